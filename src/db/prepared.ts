import type { CompiledQuery } from 'kysely';
import type { Db } from './database.ts';

/**
 * A query of the hot path, built and compiled once. `build` gets placeholders to use in the order in which the values
 * are given later.
 */
export function prepared<R>(build: (db: Db) => { compile(): CompiledQuery<R> }) {
  let compiled: CompiledQuery<R> | undefined;
  return async (db: Db, ...parameters: unknown[]): Promise<R[]> => {
    compiled ??= build(db).compile();
    const { rows } = await db.executeQuery<R>({ ...compiled, parameters });
    return rows;
  };
}
