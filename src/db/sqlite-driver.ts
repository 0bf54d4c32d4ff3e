// Kysely on node:sqlite: one writer with group commit, and a separate connection for reads outside of a transaction, which
// sees only what is committed.

import type { StatementSync } from 'node:sqlite';
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
import { Memo } from '../lib/bounded-cache.ts';
import { Handle, type Savepoint, Writer } from './sqlite-writer.ts';
import type { RunDirectly } from './transactions.ts';

class Connection implements DatabaseConnection {
  readonly #writer: Writer;
  readonly #reader: Handle;
  savepoint: Savepoint | null = null;

  constructor(writer: Writer, reader: Handle) {
    this.#writer = writer;
    this.#reader = reader;
  }

  async executeQuery<R>(query: CompiledQuery): Promise<QueryResult<R>> {
    if (this.savepoint) return this.#writer.runInTransaction(query);
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

  runInTransaction<R>(query: CompiledQuery<R>): R[] {
    return this.#writer.runInTransaction<R>(query).rows;
  }

  async shrink(pages: number): Promise<number> {
    const savepoint = await this.#writer.begin();
    let released: number;
    try {
      released = this.#writer.handle.releasePages(pages);
    } catch (error) {
      this.#writer.rollback(savepoint);
      throw error;
    }
    await this.#writer.commit(savepoint);
    return released;
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
  // Both bypass Kysely, whose overhead exceeds the query itself.
  /** A read outside of any transaction. */
  read: RunDirectly;
  /** Only while the transaction of the caller is open: there is one at a time. */
  runInTransaction: RunDirectly;
  /** Gives up to so many free pages of the file back to the disk, and how many those were. */
  shrink(pages: number): Promise<number>;
}

export function sqliteDialect(path: string): SqliteDialect {
  const driver = new SqliteDriver(path);
  return {
    createAdapter: () => new ConcurrentSqliteAdapter(),
    createDriver: () => driver,
    createIntrospector: (db) => new SqliteIntrospector(db),
    createQueryCompiler: () => new SqliteQueryCompiler(),
    read: (query) => driver.read(query),
    runInTransaction: (query) => driver.runInTransaction(query),
    shrink: (pages) => driver.shrink(pages),
  };
}

// Results of reads outside of any transaction are cached until the database changes: the writer reports the commits of this
// process, and SQLite's `data_version` shows those of others.

/** Statements, and for each of them parameters. */
const maxStatements = 200;
const maxCached = 500;

/** For how long cached reads may miss the commit of another process, such as the command line. */
const maxStaleMs = 20;

const newCache = () => new Memo<unknown[]>(maxCached);

class Reader {
  readonly handle: Handle;
  readonly #dataVersion: StatementSync;
  readonly #cached = new Memo<Memo<unknown[]>>(maxStatements);
  #version: unknown = null;
  #checkAt = 0;

  constructor(handle: Handle) {
    this.handle = handle;
    this.#dataVersion = handle.database.prepare('pragma data_version');
  }

  /** The rows are shared with other callers and must not be changed. */
  read<R>(query: CompiledQuery<R>): R[] {
    const now = performance.now();
    if (now >= this.#checkAt) this.#checkVersion(now);
    // In two steps: the text of a statement is always the same object, whose hash is known, and putting it in front of the
    // parameters would make one whose hash is not.
    const ofStatement = this.#cached.get(query.sql, newCache);
    return ofStatement.get(query.parameters.join('\n'), () => this.handle.run<R>(query).rows) as R[];
  }

  /** Called after every commit of this process, which needs no look at `data_version`. */
  expire = (): void => {
    this.#cached.clear();
  };

  #checkVersion(now: number): void {
    const { data_version: version } = this.#dataVersion.get() as { data_version: number };
    if (version !== this.#version) this.#cached.clear();
    this.#version = version;
    this.#checkAt = now + maxStaleMs;
  }
}
