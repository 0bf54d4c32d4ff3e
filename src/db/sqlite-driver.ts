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
import { Memo } from '../lib/memo.ts';

const maxStatements = 500;

interface Statement {
  statement: StatementSync;
  givesRows: boolean;
}

class Handle {
  readonly database: DatabaseSync;
  readonly #statements = new Memo<Statement>(maxStatements);

  constructor(path: string, readOnly: boolean) {
    this.database = new DatabaseSync(path, { readOnly, timeout: 5000 });
    if (!readOnly) this.database.exec('pragma journal_mode = wal; pragma synchronous = full; pragma foreign_keys = on');
    this.database.exec('pragma cache_size = -16384; pragma temp_store = memory');
  }

  run<R>({ sql, parameters }: CompiledQuery): QueryResult<R> {
    const { statement, givesRows } = this.#statement(sql);
    const values = parameters as SQLInputValue[];
    if (givesRows) return { rows: statement.all(...values) as R[] };
    const { changes, lastInsertRowid } = statement.run(...values);
    return { rows: [], numAffectedRows: BigInt(changes), insertId: BigInt(lastInsertRowid) };
  }

  do(sql: 'begin immediate' | 'savepoint one' | 'release one' | 'commit'): void {
    this.#statement(sql).statement.run();
  }

  #statement(sql: string): Statement {
    return this.#statements.get(sql, () => {
      const statement = this.database.prepare(sql);
      return { statement, givesRows: statement.columns().length > 0 };
    });
  }
}

const maxRemembered = 2000;

/** How long the commit of another process, such as the command line, may go unnoticed by remembered reads. */
const othersUnnoticedMs = 20;

/**
 * Reads outside of any transaction. What a read gave is remembered until the database changes. Commits of this process
 * are told; those of another show in SQLite's `data_version`.
 */
class Reader {
  readonly handle: Handle;
  readonly #dataVersion: StatementSync;
  readonly #remembered = new Memo<unknown[]>(maxRemembered);
  #version: unknown = null;
  #lookAgainAt = 0;

  constructor(handle: Handle) {
    this.handle = handle;
    this.#dataVersion = handle.database.prepare('pragma data_version');
  }

  /** The rows are shared with other callers: they are for reading. */
  read<R>(query: CompiledQuery<R>): R[] {
    const now = performance.now();
    if (now >= this.#lookAgainAt) this.#look(now);
    const key = query.sql + query.parameters.join('\n');
    return this.#remembered.get(key, () => this.handle.run<R>(query).rows) as R[];
  }

  /** This process has committed. */
  expire = (): void => {
    this.#lookAgainAt = 0;
  };

  #look(now: number): void {
    const { data_version: version } = this.#dataVersion.get() as { data_version: number };
    if (version !== this.#version) this.#remembered.clear();
    this.#version = version;
    this.#lookAgainAt = now + othersUnnoticedMs;
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
  #flush: Promise<void> | null = null;

  readonly #onCommit: () => void;

  constructor(handle: Handle, onCommit: () => void) {
    this.handle = handle;
    this.#onCommit = onCommit;
  }

  async begin(): Promise<void> {
    await this.#lock();
    try {
      if (!this.handle.database.isTransaction) this.handle.do('begin immediate');
      this.handle.do('savepoint one');
    } catch (error) {
      this.#unlock();
      throw error;
    }
  }

  /** Resolves when what was written since begin() is on disk. */
  commit(): Promise<void> {
    this.handle.do('release one');
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

  /** Waits for what is under way; nothing may begin afterwards. */
  async close(): Promise<void> {
    while (this.#flush) await this.#flush;
    this.handle.database.close();
  }

  #planFlush(): void {
    this.#flush ??= new Promise((resolve) => setImmediate(resolve)).then(() => this.#commitGroup());
  }

  async #commitGroup(): Promise<void> {
    await this.#lock();
    this.#flush = null;
    try {
      if (this.handle.database.isTransaction) this.handle.do('commit');
      this.#onCommit();
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
  #reader!: Reader;

  constructor(path: string) {
    this.#path = path;
  }

  async init(): Promise<void> {
    const writing = new Handle(this.#path, false); // first: it makes the file
    const reader = new Reader(new Handle(this.#path, true));
    this.#reader = reader;
    this.#writer = new Writer(writing, reader.expire);
  }

  read<R>(query: CompiledQuery<R>): R[] {
    return this.#reader.read(query);
  }

  async acquireConnection(): Promise<Connection> {
    return new Connection(this.#writer, this.#reader.handle);
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
    await this.#writer?.close();
    this.#reader?.handle.database.close();
  }
}

class ConcurrentSqliteAdapter extends SqliteAdapter {
  override get supportsMultipleConnections(): boolean {
    return true;
  }
}

export interface SqliteDialect extends Dialect {
  /** A read outside of any transaction, without Kysely's way there, which costs more than the read itself. */
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
