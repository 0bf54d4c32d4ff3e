import { join } from 'node:path';
import { Kysely, PostgresDialect } from 'kysely';
import type { Database } from './database.ts';
import { readDirectly } from './prepared.ts';
import { sqliteDialect } from './sqlite-driver.ts';
import type { Tables } from './tables.ts';
import { trackTransactions } from './transactions.ts';

interface DatabaseOptions {
  /** postgres://…, or null for SQLite in the data directory. */
  url: string | null;
  dataDir: string;
  onConnectionLost: (error: Error) => void;
  /** One connection of PostgreSQL, without limits. */
  unlimited?: boolean;
}

export async function openDatabase(options: DatabaseOptions): Promise<Database> {
  const { url, dataDir, onConnectionLost, unlimited = false } = options;
  if (url === null) {
    const dialect = sqliteDialect(join(dataDir, 'sluice.db'));
    const db = new Kysely<Tables>({ dialect });
    readDirectly(db, dialect.read);
    trackTransactions(db, dialect.runInTransaction);
    return { db, dialect: 'sqlite', shrink: dialect.shrink, close: () => db.destroy() };
  }
  // Imported here so that a start on SQLite does not load it.
  const { openPool } = await import('./postgres-pool.ts');
  const pool = openPool({ url, onConnectionLost, ...(unlimited && { unlimited, max: 1 }) });
  const db = new Kysely<Tables>({ dialect: new PostgresDialect({ pool }) });
  trackTransactions(db);
  return { db, dialect: 'postgres', close: () => db.destroy() };
}
