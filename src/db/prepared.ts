// Queries of the hot path, built and compiled once for each dialect. On SQLite they bypass Kysely, except inserts outside of
// a transaction.
import type { CompiledQuery } from 'kysely';
import { type Db, dialectOf } from './database.ts';
import type { DialectName } from './migrations/types.ts';
import type { Tables } from './tables.ts';
import { type RunDirectly, scopeOf } from './transactions.ts';

const readers = new WeakMap<Db, RunDirectly>();

/** Makes prepared reads of this SQLite database use `read`, unless they are in a transaction. */
export function readDirectly(db: Db, read: RunDirectly): void {
  readers.set(db, read);
}

/** Runs a query that is compiled already. */
export async function runCompiled<R>(db: Db, query: CompiledQuery<R>): Promise<R[]> {
  const run = scopeOf(db)?.runDirectly;
  return run ? run(query) : (await db.executeQuery(query)).rows;
}

/** A prepared read. `build` uses placeholder values; callers pass the real ones in the order of the query. */
export function prepared<R>(build: (db: Db) => { compile(): CompiledQuery<R> }) {
  const compiled: Partial<Record<DialectName, CompiledQuery<R>>> = {};
  return async (db: Db, ...parameters: unknown[]): Promise<R[]> => {
    const read = readers.get(db);
    const dialect = read ? 'sqlite' : dialectOf(db);
    compiled[dialect] ??= build(db).compile();
    const query = { ...compiled[dialect], parameters };
    return read ? read(query) : runCompiled(db, query);
  };
}

/** A prepared insert of one row. Every row has all columns of the table, so the names come from the first one. */
export function preparedInsert<T extends keyof Tables>(table: T) {
  const compiled: Partial<Record<DialectName, CompiledQuery>> = {};
  let columns: (keyof Tables[T])[] = [];
  return async (db: Db, row: Tables[T]): Promise<void> => {
    if (columns.length === 0) columns = Object.keys(row) as (keyof Tables[T])[];
    const dialect = dialectOf(db);
    compiled[dialect] ??= db
      .insertInto(table)
      .values(Object.fromEntries(columns.map((name) => [name, row[name]])) as never)
      .compile();
    await runCompiled(db, { ...compiled[dialect], parameters: columns.map((name) => row[name]) });
  };
}
