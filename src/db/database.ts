import { type Kysely, PostgresAdapter } from 'kysely';
import type { DialectName } from './dialect.ts';
import type { Tables } from './tables.ts';

export type Db = Kysely<Tables>;

/** Works for a transaction too. */
export const dialectOf = (db: Db): DialectName =>
  db.getExecutor().adapter instanceof PostgresAdapter ? 'postgres' : 'sqlite';

export interface Database {
  db: Db;
  dialect: DialectName;
  /** Gives up to so many free pages of the file back to the disk, and how many those were. Missing on PostgreSQL. */
  shrink?(pages: number): Promise<number>;
  close(): Promise<void>;
}
