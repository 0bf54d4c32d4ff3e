// Deletes many rows in slices, each a transaction of its own: no statement holds up others for as long as all of them
// would take.
import { type RawBuilder, sql } from 'kysely';
import { type Db, dialectOf } from './database.ts';
import type { Tables } from './tables.ts';

export const sliceRows = 500;

/** Deletes up to `limit` rows of a table that meet the condition. Gives how many. */
export async function deleteSlice(
  db: Db,
  table: keyof Tables,
  condition: RawBuilder<unknown>,
  limit = sliceRows,
): Promise<number> {
  const from = sql.table(table);
  const { numAffectedRows } = await (dialectOf(db) === 'postgres'
    ? sql`delete from ${from} where ctid = any(array(select ctid from ${from} where ${condition} limit ${limit}))`
    : sql`delete from ${from} where rowid in (select rowid from ${from} where ${condition} limit ${limit})`
  ).execute(db);
  return Number(numAffectedRows ?? 0n);
}

/** Deletes all of them. */
export async function deleteInSlices(db: Db, table: keyof Tables, condition: RawBuilder<unknown>): Promise<void> {
  while ((await deleteSlice(db, table, condition)) === sliceRows);
}
