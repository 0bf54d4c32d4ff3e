// Whether the database answers, for `/readyz`.
import { sql } from 'kysely';
import { type Db, dialectOf } from '../../db/database.ts';
import { reasonOf } from '../../db/database-errors.ts';

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
    asking = findTrouble(db)
      .catch(reasonOf)
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

async function findTrouble(db: Db): Promise<string | null> {
  if (dialectOf(db) === 'sqlite') {
    await sql`select 1`.execute(db);
    return null;
  }
  const { rows } = await sql<{ writes: boolean }>`
    select current_setting('transaction_read_only') = 'off' as writes`.execute(db);
  return rows[0]!.writes ? null : 'it takes no writes';
}
