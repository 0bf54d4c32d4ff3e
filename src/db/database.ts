import { join } from 'node:path';
import { Kysely, PostgresDialect } from 'kysely';
import pg from 'pg';
import type { DialectName } from './migrations/types.ts';
import { readDirectly } from './prepared.ts';
import { sqliteDialect } from './sqlite-driver.ts';
import type { Tables } from './tables.ts';

export type Db = Kysely<Tables>;

export interface Database {
  db: Db;
  dialect: DialectName;
  close(): Promise<void>;
}

const int8 = 20;
const parseAsNumber = {
  getTypeParser: (oid: number, format?: 'text' | 'binary') =>
    oid === int8 ? Number : pg.types.getTypeParser(oid, format as 'text'),
};

export interface DatabaseOptions {
  /** postgres://…, or null for SQLite in the data directory. */
  url: string | null;
  dataDir: string;
  onConnectionLost: (error: Error) => void;
}

export function openDatabase({ url, dataDir, onConnectionLost }: DatabaseOptions): Database {
  if (url === null) {
    const dialect = sqliteDialect(join(dataDir, 'sluice.db'));
    const db = new Kysely<Tables>({ dialect });
    readDirectly(db, dialect.read);
    return { db, dialect: 'sqlite', close: () => db.destroy() };
  }
  const pool = new pg.Pool({
    connectionString: url,
    max: 10,
    connectionTimeoutMillis: 5000,
    // A request that waits longer than this on one statement is better told to come again.
    statement_timeout: 15_000,
    idle_in_transaction_session_timeout: 30_000,
    keepAlive: true,
    types: parseAsNumber as pg.CustomTypesConfig,
  });
  pool.on('error', onConnectionLost);
  const db = new Kysely<Tables>({ dialect: new PostgresDialect({ pool }) });
  return { db, dialect: 'postgres', close: () => db.destroy() };
}
