// Queries of the hot path, built and compiled once. On SQLite, reads outside of a transaction bypass Kysely.
import type { CompiledQuery } from 'kysely';
import type { Db } from './database.ts';
import type { Tables } from './tables.ts';

type Read = <R>(query: CompiledQuery<R>) => R[];

const direct = new WeakMap<Db, Read>();

/** Makes prepared reads of this database use `read`, unless they are in a transaction. */
export function readDirectly(db: Db, read: Read): void {
  direct.set(db, read);
}

/** A prepared read. `build` uses placeholder values; callers pass the real ones in the order of the query. */
export function prepared<R>(build: (db: Db) => { compile(): CompiledQuery<R> }) {
  let compiled: CompiledQuery<R> | undefined;
  return async (db: Db, ...parameters: unknown[]): Promise<R[]> => {
    compiled ??= build(db).compile();
    const query = { ...compiled, parameters };
    const read = direct.get(db);
    if (read) return read(query);
    return (await db.executeQuery<R>(query)).rows;
  };
}

/** A prepared insert of one row. Every row has all columns of the table, so the names come from the first one. */
export function preparedInsert<T extends keyof Tables>(table: T) {
  let compiled: CompiledQuery | undefined;
  let columns: (keyof Tables[T])[] = [];
  return async (db: Db, row: Tables[T]): Promise<void> => {
    if (!compiled) {
      columns = Object.keys(row) as (keyof Tables[T])[];
      compiled = db
        .insertInto(table)
        .values(row as never)
        .compile();
    }
    await db.executeQuery({ ...compiled, parameters: columns.map((name) => row[name]) });
  };
}
