// The time that all processes on a database agree on. A clock may be set while a rollout waits for its deadline, and no two
// machines have quite the same time, so leases and stored deadlines do not use the time of day of a process.
//
// On PostgreSQL they use the clock of the database. Statements read it directly (`databaseNow`). Elsewhere a process measures
// it now and then and counts on from there with the monotonic clock, as exactly as the network allows: what one
// process makes due now is due in the process that its commit wakes. SQLite has one process, and the clock counts on from
// the time at which that process started.
import { type RawBuilder, sql } from 'kysely';
import { type Clock, monotonicOf } from '../lib/clock.ts';
import type { Log } from '../lib/log.ts';
import type { Loops } from '../lib/loops.ts';
import { type Db, dialectOf } from './database.ts';
import type { DialectName } from './dialect.ts';

/** In milliseconds since the epoch, with fractions, at the moment the expression is evaluated. */
const postgresExactNow = sql<string>`(extract(epoch from clock_timestamp()) * 1000)`;

/** In whole milliseconds. */
export const postgresNow = sql<number>`${postgresExactNow}::bigint`;

/** The time that all processes agree on, as an expression: on SQLite, which one process uses, that of the process. */
export const databaseNow = (db: Db, ownNowMs: number): RawBuilder<number> =>
  dialectOf(db) === 'postgres' ? postgresNow : sql<number>`${ownNowMs}`;

const corrected = 'the database clock differs from the last estimate: deadlines and leases follow the database clock';
/** An answer that took longer may be wrong by up to half of that time, and is used only if the known offset is worse. */
const quickMs = 500;
const measureEveryMs = 10_000;

interface ClockParts {
  db: Db;
  clock: Clock;
  log: Log;
  loops: Loops;
}

interface OpenedClock {
  clock: Clock;
  stop(): Promise<void>;
}

/** The clock of a service on this database. */
export async function openDatabaseClock(dialect: DialectName, parts: ClockParts): Promise<OpenedClock> {
  // Without a monotonic clock this is the clock of a test, and nothing else moves it.
  if (dialect === 'postgres' && parts.clock.monotonic) return postgresClock(parts);
  return { clock: singleProcessClock(parts.clock), stop: async () => {} };
}

export function singleProcessClock(clock: Clock): Clock {
  const monotonic = monotonicOf(clock);
  const aheadMs = clock.now() - monotonic.now();
  return { ...clock, deadline: () => Math.floor(monotonic.now() + aheadMs) };
}

export async function postgresClock({ db, clock, log, loops }: ClockParts): Promise<OpenedClock> {
  const monotonic = monotonicOf(clock);
  let aheadMs = clock.now() - monotonic.now();
  const ask = async () => {
    const askedAt = monotonic.now();
    const { now } = await db.selectNoFrom(postgresExactNow.as('now')).executeTakeFirstOrThrow();
    const tookMs = monotonic.now() - askedAt;
    return { tookMs, measuredMs: Number(now) - (askedAt + tookMs / 2) };
  };
  const measure = async (): Promise<void> => {
    const answers = [await ask(), await ask(), await ask()];
    const { tookMs, measuredMs } = answers.reduce((a, b) => (b.tookMs < a.tookMs ? b : a)); // the most exact one
    const errorMs = measuredMs - aheadMs;
    if (tookMs > quickMs && Math.abs(errorMs) <= tookMs / 2) return;
    if (Math.abs(errorMs) > 1000) log.info({ byMs: Math.round(errorMs) }, corrected);
    aheadMs = measuredMs;
  };
  await measure();
  const loop = loops.start({
    name: 'time of the database',
    intervalMs: measureEveryMs,
    step: measure,
  });
  const database = () => Math.floor(monotonic.now() + aheadMs);
  return { clock: { ...clock, database, deadline: database }, stop: () => loop.stop() };
}
