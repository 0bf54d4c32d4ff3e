// Kysely on node:sqlite: one writer, one reader, group commit.
//
// A commit on SQLite is an fsync, and an fsync is the price of a write. So transactions that run in the same turn of the
// event loop share one: each runs alone, inside a savepoint of an open outer transaction, and all of them are
// acknowledged together after the one COMMIT that makes them durable. A transaction that fails rolls back its savepoint
// and nothing else. Reads outside a transaction use a connection of their own and see only what is committed.
import { DatabaseSync, type SQLInputValue, type StatementSync } from 'node:sqlite';
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

const maxStatements = 500;

class Handle {
  readonly database: DatabaseSync;
  readonly #statements = new Map<string, StatementSync>();

  constructor(path: string, readOnly: boolean) {
    this.database = new DatabaseSync(path, { readOnly, timeout: 5000 });
    if (!readOnly) this.database.exec('pragma journal_mode = wal; pragma synchronous = full; pragma foreign_keys = on');
    this.database.exec('pragma cache_size = -16384; pragma temp_store = memory');
  }

  run<R>({ sql, parameters }: CompiledQuery): QueryResult<R> {
    const statement = this.#statement(sql);
    const values = parameters as SQLInputValue[];
    if (statement.columns().length > 0) return { rows: statement.all(...values) as R[] };
    const { changes, lastInsertRowid } = statement.run(...values);
    return { rows: [], numAffectedRows: BigInt(changes), insertId: BigInt(lastInsertRowid) };
  }

  #statement(sql: string): StatementSync {
    const known = this.#statements.get(sql);
    if (known) return known;
    if (this.#statements.size >= maxStatements) this.#statements.clear();
    const statement = this.database.prepare(sql);
    this.#statements.set(sql, statement);
    return statement;
  }
}

interface Waiting {
  resolve: () => void;
  reject: (error: unknown) => void;
}

class Writer {
  readonly handle: Handle;
  #locked = false;
  readonly #queue: (() => void)[] = [];
  #unsettled: Waiting[] = [];
  #flushPlanned = false;

  constructor(handle: Handle) {
    this.handle = handle;
  }

  async begin(): Promise<void> {
    await this.#lock();
    try {
      if (!this.handle.database.isTransaction) this.handle.database.exec('begin immediate');
      this.handle.database.exec('savepoint one');
    } catch (error) {
      this.#unlock();
      throw error;
    }
  }

  /** Resolves when what was written since begin() is on disk. */
  commit(): Promise<void> {
    this.handle.database.exec('release one');
    const settled = new Promise<void>((resolve, reject) => this.#unsettled.push({ resolve, reject }));
    this.#unlock();
    this.#planFlush();
    return settled;
  }

  rollback(): void {
    if (this.handle.database.isTransaction) this.handle.database.exec('rollback to one; release one');
    // A full disk or an I/O error makes SQLite roll back the outer transaction too, and with it every neighbour.
    else this.#settle(new Error('the transaction was rolled back by SQLite'));
    this.#unlock();
    this.#planFlush();
  }

  #planFlush(): void {
    if (this.#flushPlanned) return;
    this.#flushPlanned = true;
    setImmediate(() => void this.#flush());
  }

  async #flush(): Promise<void> {
    await this.#lock();
    this.#flushPlanned = false;
    try {
      if (this.handle.database.isTransaction) this.handle.database.exec('commit');
      this.#settle(null);
    } catch (error) {
      if (this.handle.database.isTransaction) this.handle.database.exec('rollback');
      this.#settle(error);
    } finally {
      this.#unlock();
    }
  }

  #settle(error: unknown): void {
    const settled = this.#unsettled;
    this.#unsettled = [];
    for (const { resolve, reject } of settled) error === null ? resolve() : reject(error);
  }

  #lock(): Promise<void> | void {
    if (this.#locked) return new Promise((resolve) => this.#queue.push(resolve));
    this.#locked = true;
  }

  #unlock(): void {
    const next = this.#queue.shift();
    if (next) next();
    else this.#locked = false;
  }
}

class Connection implements DatabaseConnection {
  readonly #writer: Writer;
  readonly #reader: Handle;
  inTransaction = false;

  constructor(writer: Writer, reader: Handle) {
    this.#writer = writer;
    this.#reader = reader;
  }

  async executeQuery<R>(query: CompiledQuery): Promise<QueryResult<R>> {
    if (this.inTransaction) return this.#writer.handle.run(query);
    if (SelectQueryNode.is(query.query)) return this.#reader.run(query);
    await this.#writer.begin();
    let result: QueryResult<R>;
    try {
      result = this.#writer.handle.run(query);
    } catch (error) {
      this.#writer.rollback();
      throw error;
    }
    await this.#writer.commit();
    return result;
  }

  // biome-ignore lint/correctness/useYield: the interface wants a generator; nothing here streams
  async *streamQuery<R>(): AsyncIterableIterator<QueryResult<R>> {
    throw new Error('streaming is not supported');
  }
}

class SqliteDriver implements Driver {
  readonly #path: string;
  #writer!: Writer;
  #reader!: Handle;

  constructor(path: string) {
    this.#path = path;
  }

  async init(): Promise<void> {
    this.#writer = new Writer(new Handle(this.#path, false));
    this.#reader = new Handle(this.#path, true);
  }

  async acquireConnection(): Promise<Connection> {
    return new Connection(this.#writer, this.#reader);
  }

  async beginTransaction(connection: Connection): Promise<void> {
    await this.#writer.begin();
    connection.inTransaction = true;
  }

  async commitTransaction(connection: Connection): Promise<void> {
    connection.inTransaction = false;
    await this.#writer.commit();
  }

  async rollbackTransaction(connection: Connection): Promise<void> {
    connection.inTransaction = false;
    this.#writer.rollback();
  }

  async releaseConnection(): Promise<void> {}

  async destroy(): Promise<void> {
    this.#reader?.database.close();
    this.#writer?.handle.database.close();
  }
}

class ConcurrentSqliteAdapter extends SqliteAdapter {
  override get supportsMultipleConnections(): boolean {
    return true;
  }
}

export const sqliteDialect = (path: string): Dialect => ({
  createAdapter: () => new ConcurrentSqliteAdapter(),
  createDriver: () => new SqliteDriver(path),
  createIntrospector: (db) => new SqliteIntrospector(db),
  createQueryCompiler: () => new SqliteQueryCompiler(),
});
