// Kysely on node:sqlite: one writer with group commit, and a separate connection for reads outside of a transaction, which
// sees only what is committed.
import {
  type CompiledQuery,
  type DatabaseConnection,
  type Dialect,
  type Driver,
  type QueryResult,
  SelectQueryNode,
  SqliteAdapter,
  SqliteIntrospector,
  SqliteQueryCompiler,
} from 'kysely';
import { Handle } from './handle.ts';
import { Reader } from './reader.ts';
import { type Savepoint, Writer } from './writer.ts';

class Connection implements DatabaseConnection {
  readonly #writer: Writer;
  readonly #reader: Handle;
  savepoint: Savepoint | null = null;

  constructor(writer: Writer, reader: Handle) {
    this.#writer = writer;
    this.#reader = reader;
  }

  async executeQuery<R>(query: CompiledQuery): Promise<QueryResult<R>> {
    if (this.savepoint) return this.#runInTransaction(query);
    if (SelectQueryNode.is(query.query)) return this.#reader.run(query);
    const savepoint = await this.#writer.begin();
    let result: QueryResult<R>;
    try {
      result = this.#writer.handle.run(query);
    } catch (error) {
      this.#writer.rollback(savepoint);
      throw error;
    }
    await this.#writer.commit(savepoint);
    return result;
  }

  /** After SQLite has rolled back by itself, a statement would be committed at once, outside of any transaction. */
  #runInTransaction<R>(query: CompiledQuery): QueryResult<R> {
    const { handle } = this.#writer;
    if (!handle.database.isTransaction) throw new Error('the transaction was rolled back by SQLite');
    return handle.run(query);
  }

  // biome-ignore lint/correctness/useYield: the interface requires a generator; nothing here streams
  async *streamQuery<R>(): AsyncIterableIterator<QueryResult<R>> {
    throw new Error('streaming is not supported');
  }
}

class SqliteDriver implements Driver {
  readonly #path: string;
  #writer!: Writer;
  #reader!: Reader;

  constructor(path: string) {
    this.#path = path;
  }

  async init(): Promise<void> {
    // The writer comes first because it creates the file.
    this.#writer = new Writer(
      () => new Handle(this.#path, false),
      () => this.#reader.expire(),
    );
    this.#reader = new Reader(new Handle(this.#path, true));
  }

  read<R>(query: CompiledQuery<R>): R[] {
    return this.#reader.read(query);
  }

  async acquireConnection(): Promise<Connection> {
    return new Connection(this.#writer, this.#reader.handle);
  }

  async beginTransaction(connection: Connection): Promise<void> {
    connection.savepoint = await this.#writer.begin();
  }

  async commitTransaction(connection: Connection): Promise<void> {
    await this.#writer.commit(connection.savepoint!);
    connection.savepoint = null;
  }

  async rollbackTransaction(connection: Connection): Promise<void> {
    this.#writer.rollback(connection.savepoint!);
    connection.savepoint = null;
  }

  async releaseConnection(): Promise<void> {}

  async destroy(): Promise<void> {
    await this.#writer?.close();
    this.#reader?.handle.database.close();
  }
}

class ConcurrentSqliteAdapter extends SqliteAdapter {
  override get supportsMultipleConnections(): boolean {
    return true;
  }
}

interface SqliteDialect extends Dialect {
  /** A read outside of any transaction that bypasses Kysely, whose overhead exceeds the read itself. */
  read<R>(query: CompiledQuery<R>): R[];
}

export function sqliteDialect(path: string): SqliteDialect {
  const driver = new SqliteDriver(path);
  return {
    createAdapter: () => new ConcurrentSqliteAdapter(),
    createDriver: () => driver,
    createIntrospector: (db) => new SqliteIntrospector(db),
    createQueryCompiler: () => new SqliteQueryCompiler(),
    read: (query) => driver.read(query),
  };
}
