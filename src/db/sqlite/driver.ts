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
import { Writer } from './writer.ts';

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
    const writing = new Handle(this.#path, false); // opened first because it creates the file
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
