import { join } from 'node:path';
import { Kysely, PostgresAdapter, PostgresDialect } from 'kysely';
import { hearTransactions } from './after-commit.ts';
import type { DialectName } from './migrations/types.ts';
import { readDirectly } from './prepared.ts';
import { sqliteDialect } from './sqlite-driver.ts';
import type { Tables } from './tables.ts';

export type Db = Kysely<Tables>;

/** Also of a transaction. */
export const dialectOf = (db: Db): DialectName =>
  db.getExecutor().adapter instanceof PostgresAdapter ? 'postgres' : 'sqlite';

export interface Database {
  db: Db;
  dialect: DialectName;
  close(): Promise<void>;
}

export interface DatabaseOptions {
  /** postgres://…, or null for SQLite in the data directory. */
  url: string | null;
  dataDir: string;
  onConnectionLost: (error: Error) => void;
}

export async function openDatabase({ url, dataDir, onConnectionLost }: DatabaseOptions): Promise<Database> {
  if (url === null) {
    const dialect = sqliteDialect(join(dataDir, 'sluice.db'));
    const db = new Kysely<Tables>({ dialect });
    readDirectly(db, dialect.read);
    hearTransactions(db);
    return { db, dialect: 'sqlite', close: () => db.destroy() };
  }
  // Loaded only where it is used: a start on SQLite does not wait for it.
  const { openPool } = await import('./postgres-pool.ts');
  const db = new Kysely<Tables>({ dialect: new PostgresDialect({ pool: openPool(url, onConnectionLost) }) });
  hearTransactions(db);
  return { db, dialect: 'postgres', close: () => db.destroy() };
}
