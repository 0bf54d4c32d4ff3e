// The time that deadlines and leases go by, in a process whose clock is wrong.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openDatabaseClock } from '../../../src/db/database-clock.ts';
import { databaseOf, deadlineOf } from '../../../src/lib/clock.ts';
import { createLog } from '../../../src/lib/log.ts';
import { createLoops } from '../../../src/lib/loops.ts';
import { onPostgres } from '../../helpers/app.ts';
import { sharedApp } from '../../helpers/shared-app.ts';

const t = sharedApp({ env: { SLUICE_ROLES: 'api' } });
const log = createLog({ level: 'silent', format: 'json' });
const hourMs = 3600_000;
/** The database answers, and the test goes on, within this time. */
const soonMs = 20_000;

const open = (clock: { now(): number; monotonic?(): number }) => {
  const { db, dialect } = t.app.store;
  return openDatabaseClock(dialect, { db, clock, log, loops: createLoops(log) });
};
const isNear = (a: number, b: number) => assert.ok(Math.abs(a - b) < soonMs, `${a} is ${a - b} ms from ${b}`);

test('a clock that is set does not move it; on PostgreSQL it is that of the database from the start', async () => {
  let offMs = hourMs;
  const { clock, stop } = await open({ now: () => Date.now() + offMs, monotonic: () => performance.now() });
  const expected = () => Date.now() + (onPostgres ? 0 : hourMs);
  isNear(deadlineOf(clock).now(), expected());
  offMs = -5 * hourMs;
  isNear(deadlineOf(clock).now(), expected());
  isNear(clock.now(), Date.now() - 5 * hourMs);
  isNear(databaseOf(clock).now(), onPostgres ? Date.now() : clock.now());
  await stop();
});

test('a clock without a monotonic one is followed', async () => {
  let nowMs = 1000;
  const { clock, stop } = await open({ now: () => nowMs });
  nowMs += hourMs;
  assert.equal(deadlineOf(clock).now(), nowMs);
  await stop();
});

if (onPostgres) {
  test('the clock of the database is known to less than a millisecond', async () => {
    const passedOver = new Set<boolean>();
    for (let i = 0; i < 50; i++) {
      let monotonicMs = 0;
      const { clock, stop } = await open({ now: () => 0, monotonic: () => monotonicMs });
      const atFirst = deadlineOf(clock).now();
      monotonicMs = 0.5;
      passedOver.add(deadlineOf(clock).now() > atFirst);
      await stop();
    }
    assert.deepEqual(passedOver, new Set([true, false]), 'half a millisecond later it is the next one, or not yet');
  });
}
