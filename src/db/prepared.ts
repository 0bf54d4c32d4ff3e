// Queries of the hot path, built and compiled once. On SQLite a read outside of a transaction goes straight to its
// connection.
import type { CompiledQuery } from 'kysely';
import type { Db } from './database.ts';
import type { Tables } from './tables.ts';

type Read = <R>(query: CompiledQuery<R>) => R[];

const direct = new WeakMap<Db, Read>();

/** From now on, prepared reads of this database that are not in a transaction are done by `read`. */
export function readDirectly(db: Db, read: Read): void {
  direct.set(db, read);
}

/** A read. `build` uses any values; the real ones are given later, in the order in which they stand in the query. */
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

/** An insert of one row. Every row has all columns of the table, so the first one tells their names. */
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
