// Whether a load balancer should send requests here, by name: `/readyz` for all of it, `/readyz/reads`, `/readyz/writes` and
// `/readyz/routes` for one.
import type { Db } from '../db/database.ts';
import { unavailableReason } from '../db/database-errors.ts';

/** What is wrong; null: nothing. */
type Trouble = string | null;

export const readinessChecks = ['reads', 'writes', 'routes'] as const;
type ReadinessCheck = (typeof readinessChecks)[number];

export type Readiness = Record<ReadinessCheck, () => Promise<Trouble>>;

export interface ReadinessParts {
  db: Db;
  /** How many routers of this process have a routing table in force; null: it has none to do with. */
  countRouters(): number | null;
}

const answerWithinMs = 2000;
/** Few write as often as probes may come. */
const writeKnownForMs = 1000;

export const readinessOf = ({ db, countRouters }: ReadinessParts): Readiness => ({
  reads: oneAtATime(async () => void (await db.selectFrom('meta').select('name').limit(1).execute())),
  writes: oneAtATime(() => tryWrite(db), writeKnownForMs),
  routes: async () => (countRouters() === 0 ? 'no router has a routing table in force' : null),
});

/** A full disk, a lock or a standby shows only when something is written. */
async function tryWrite(db: Db): Promise<void> {
  const value = new Date().toISOString();
  await db
    .insertInto('meta')
    .values({ name: 'write_check', value })
    .onConflict((conflict) => conflict.column('name').doUpdateSet({ value }))
    .execute();
}

/**
 * One attempt is under way however many requests come: a silent database must not use up the connections. One that
 * succeeded stands for those of the next `knownForMs`.
 */
function oneAtATime(attempt: () => Promise<void>, knownForMs = 0): () => Promise<Trouble> {
  let asking: Promise<Trouble> | null = null;
  let askedAt = 0;
  let knownUntil = 0;
  const ask = (): Promise<Trouble> => {
    askedAt = performance.now();
    asking = attempt()
      .then(() => {
        knownUntil = performance.now() + knownForMs;
        return null;
      }, unavailableReason)
      .finally(() => {
        asking = null;
      });
    return asking;
  };
  return async () => {
    if (asking === null && performance.now() < knownUntil) return null;
    const answer = asking ?? ask();
    const { promise: late, resolve } = Promise.withResolvers<Trouble>();
    const leftMs = Math.max(0, askedAt + answerWithinMs - performance.now());
    const timer = setTimeout(resolve, leftMs, 'no answer');
    return Promise.race([answer, late]).finally(() => clearTimeout(timer));
  };
}
