import { type Kysely, PostgresAdapter } from 'kysely';
import type { DialectName } from './migrations/types.ts';
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
