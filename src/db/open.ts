import { join } from 'node:path';
import { Kysely, PostgresDialect } from 'kysely';
import type { Database } from './database.ts';
import { readDirectly } from './prepared.ts';
import { sqliteDialect } from './sqlite/driver.ts';
import type { Tables } from './tables.ts';
import { trackTransactions } from './transactions.ts';

interface DatabaseOptions {
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
    trackTransactions(db);
    return { db, dialect: 'sqlite', close: () => db.destroy() };
  }
  // Imported here so that a start on SQLite does not load it.
  const { openPool } = await import('./postgres/pool.ts');
  const db = new Kysely<Tables>({ dialect: new PostgresDialect({ pool: openPool({ url, onConnectionLost }) }) });
  trackTransactions(db);
  return { db, dialect: 'postgres', close: () => db.destroy() };
}
