// How Kysely talks to a database on which transactions take turns.
import {
  type CompiledQuery,
  type DatabaseConnection,
  type Dialect,
  type Driver,
  type QueryResult,
  SqliteAdapter,
  SqliteIntrospector,
  SqliteQueryCompiler,
} from 'kysely';
import type { Machine } from './machine.ts';

/** `T`: a turn, which is a transaction, or one statement that is its own. */
interface Turns<T> {
  read<R>(machine: Machine, query: CompiledQuery): Promise<QueryResult<R>>;
  begin(machine: Machine): Promise<T>;
  write<R>(turn: T, query: CompiledQuery): Promise<QueryResult<R>>;
  commit(turn: T): Promise<void>;
  rollback(turn: T): void;
}

export const turnsDialect = <T>(database: Turns<T>, machine: Machine): Dialect => ({
  createAdapter: () => new ManyConnections(),
  createDriver: () => new TurnDriver(database, machine),
  createIntrospector: (of) => new SqliteIntrospector(of),
  createQueryCompiler: () => new SqliteQueryCompiler(),
});

const isRead = ({ sql }: CompiledQuery): boolean => /^\s*(select|with)\b/i.test(sql);

class TurnConnection<T> implements DatabaseConnection {
  readonly #database: Turns<T>;
  readonly #machine: Machine;
  turn: T | null = null;

  constructor(database: Turns<T>, machine: Machine) {
    this.#database = database;
    this.#machine = machine;
  }

  async executeQuery<R>(query: CompiledQuery): Promise<QueryResult<R>> {
    if (this.turn) return this.#database.write(this.turn, query);
    if (isRead(query)) return this.#database.read(this.#machine, query);
    const turn = await this.#database.begin(this.#machine);
    let result: QueryResult<R>;
    try {
      result = await this.#database.write(turn, query);
    } catch (error) {
      this.#database.rollback(turn);
      throw error;
    }
    await this.#database.commit(turn);
    return result;
  }

  // biome-ignore lint/correctness/useYield: the interface requires a generator; nothing here streams
  async *streamQuery<R>(): AsyncIterableIterator<QueryResult<R>> {
    throw new Error('streaming is not supported');
  }
}

class TurnDriver<T> implements Driver {
  readonly #database: Turns<T>;
  readonly #machine: Machine;

  constructor(database: Turns<T>, machine: Machine) {
    this.#database = database;
    this.#machine = machine;
  }

  async init(): Promise<void> {}

  async acquireConnection(): Promise<TurnConnection<T>> {
    return new TurnConnection<T>(this.#database, this.#machine);
  }

  async beginTransaction(connection: TurnConnection<T>): Promise<void> {
    connection.turn = await this.#database.begin(this.#machine);
  }

  async commitTransaction(connection: TurnConnection<T>): Promise<void> {
    await this.#database.commit(connection.turn!);
    connection.turn = null;
  }

  async rollbackTransaction(connection: TurnConnection<T>): Promise<void> {
    if (connection.turn) this.#database.rollback(connection.turn);
    connection.turn = null;
  }

  async releaseConnection(): Promise<void> {}

  async destroy(): Promise<void> {}
}

class ManyConnections extends SqliteAdapter {
  override get supportsMultipleConnections(): boolean {
    return true;
  }
}
