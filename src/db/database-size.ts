// How much the database holds, for people and for metrics.
import { sql } from 'kysely';
import type { Db } from './database.ts';
import { dialectOf } from './database.ts';
import type { DialectName } from './dialect.ts';
import type { Tables } from './tables.ts';

/** What grows with time, as opposed to what people set up. */
export const growing = [
  'deployment',
  'revision',
  'event',
  'delivery',
  'alert',
  'audit',
  'traffic',
  'log_segment',
] as const satisfies (keyof Tables)[];

/** One row: `bytes`, and how many of them are free for new rows (null: not known). */
export const sizeQuery: Record<DialectName, string> = {
  sqlite: `select p.page_count * s.page_size as bytes, f.freelist_count * s.page_size as free
    from pragma_page_count p, pragma_page_size s, pragma_freelist_count f`,
  postgres: 'select pg_database_size(current_database()) as bytes, null as free',
};

const named = growing.map((name) => `'${name}'`).join(', ');

/** Rows of `name` and `rows`. PostgreSQL counts them when it vacuums, so that it has not to count them now. */
export const rowsQuery: Record<DialectName, string> = {
  sqlite: growing.map((name) => `select '${name}' as name, count(*) as rows from ${name}`).join(' union all '),
  postgres: `select relname as name, greatest(0, reltuples)::bigint as rows from pg_class
    where relname in (${named}) and relkind = 'r' and relnamespace = current_schema()::regnamespace`,
};

export interface DatabaseSize {
  bytes: number;
  free: number | null;
  rows: Map<string, number>;
}

export async function readDatabaseSize(db: Db): Promise<DatabaseSize> {
  const dialect = dialectOf(db);
  const size = await sql.raw<{ bytes: number; free: number | null }>(sizeQuery[dialect]).execute(db);
  const rows = await sql.raw<{ name: string; rows: number }>(rowsQuery[dialect]).execute(db);
  const { bytes, free } = size.rows[0]!;
  return {
    bytes: Number(bytes),
    free: free === null ? null : Number(free),
    rows: new Map(rows.rows.map((row) => [row.name, Number(row.rows)])),
  };
}
