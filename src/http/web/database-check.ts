// Whether the database answers, for `/readyz`.
import { sql } from 'kysely';
import type { Db } from '../../db/database.ts';
import { reasonOf } from '../../db/errors.ts';

const timeoutMs = 2000;

/**
 * Returns what asks: null where the database answers, else what is wrong with it. However many ask, one question is on its
 * way at a time: a silent database must not use up the connections.
 */
export function databaseCheck(db: Db): () => Promise<string | null> {
  let asking: Promise<string | null> | null = null;
  let askedAt = 0;
  const ask = () => {
    askedAt = performance.now();
    asking = sql`select 1`
      .execute(db)
      .then(() => null, reasonOf)
      .finally(() => {
        asking = null;
      });
    return asking;
  };
  return () => {
    const answer = asking ?? ask();
    const { promise: late, resolve } = Promise.withResolvers<string>();
    const leftMs = Math.max(0, askedAt + timeoutMs - performance.now());
    const timer = setTimeout(resolve, leftMs, 'no answer');
    return Promise.race([answer, late]).finally(() => clearTimeout(timer));
  };
}
