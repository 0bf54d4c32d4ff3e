import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { EnvironmentKey } from '../../environments/environment-key.ts';
import { RegionQueues, Schedule } from './schedule.ts';

const key = (environment: string): EnvironmentKey => ({ projectId: 'prj_1', environment });
const take = (schedule: Schedule, nowMs: number, limit = 10) =>
  schedule.take(nowMs, limit).map(({ environment }) => environment);

test('an environment is taken when it is due, and once', () => {
  const schedule = new Schedule();
  schedule.plan(key('a'), 100);
  assert.deepEqual(take(schedule, 99), []);
  assert.equal(schedule.isAnyDue(99), false);
  assert.equal(schedule.isAnyDue(100), true);
  assert.deepEqual(take(schedule, 100), ['a']);
  assert.deepEqual(take(schedule, 1_000_000), []);
  schedule.plan(key('a'), 200);
  assert.deepEqual(take(schedule, 200), ['a']);
});

test('the longest due come first, up to the limit', () => {
  const schedule = new Schedule();
  schedule.enqueue(key('late'), 30);
  schedule.enqueue(key('early'), 10);
  schedule.plan(key('middle'), 20);
  assert.deepEqual(take(schedule, 50, 2), ['early', 'middle']);
  assert.deepEqual(take(schedule, 50, 2), ['late']);
});

test('enqueueing moves a planned pass up, and never back', () => {
  const schedule = new Schedule();
  schedule.plan(key('a'), 1000);
  schedule.enqueue(key('a'), 10);
  schedule.enqueue(key('a'), 20);
  assert.deepEqual(take(schedule, 10), ['a']);
});

test('enqueued during a pass: another follows, whether the pass plans the next one or removes it', () => {
  for (const end of [(s: Schedule) => s.plan(key('a'), 1000), (s: Schedule) => s.remove(key('a'))]) {
    const schedule = new Schedule();
    schedule.enqueue(key('a'), 0);
    take(schedule, 0);
    schedule.enqueue(key('a'), 5);
    end(schedule);
    assert.deepEqual(take(schedule, 5), ['a']);
  }
});

test('discovering adds what is missing and leaves the rest as planned', () => {
  const schedule = new Schedule();
  schedule.plan(key('planned'), 1000);
  schedule.enqueue(key('taken'), 0);
  take(schedule, 0);
  schedule.discover([key('planned'), key('taken'), key('new')], 10);
  assert.deepEqual(take(schedule, 10), ['new']);
});

test('every one of many is taken once a round, whatever moved in between', () => {
  const schedule = new Schedule();
  const names = Array.from({ length: 500 }, (_, n) => String(n));
  schedule.discover(names.map(key), 0);
  for (let round = 1; round <= 3; round++) {
    const seen: string[] = [];
    while (schedule.isAnyDue(round)) {
      for (const taken of schedule.take(round, 64)) {
        if (seen.length % 3 === 0) schedule.enqueue(taken, round + 0.5);
        seen.push(taken.environment);
        schedule.plan(taken, round + 1);
      }
      schedule.enqueueScheduled([key('7')], round + 0.7);
    }
    assert.deepEqual(seen.toSorted(), names.toSorted());
  }
  assert.equal(schedule.size, names.length);
});

test('what is removed is gone', () => {
  const schedule = new Schedule();
  for (let i = 0; i < 1000; i++) {
    schedule.enqueue(key(String(i)), i);
    for (const taken of schedule.take(i, 10)) schedule.remove(taken);
  }
  assert.equal(schedule.size, 0);
});

test('a sweep and a search are due at first, then after their interval; a sweep also when it is enqueued', () => {
  const schedule = new Schedule();
  assert.deepEqual(
    [schedule.takeSweep(0, 100), schedule.takeSweep(99, 100), schedule.takeSweep(100, 100)],
    [true, false, true],
  );
  schedule.enqueueSweep();
  assert.equal(schedule.takeSweep(101, 100), true);
  assert.deepEqual(
    [schedule.takeSearch(0, 10), schedule.takeSearch(9, 10), schedule.takeSearch(10, 10)],
    [true, false, true],
  );
});

test('an environment has one pass at a time: enqueued during a pass, it is taken after it', () => {
  const schedule = new Schedule();
  schedule.enqueue(key('a'), 0);
  assert.deepEqual(take(schedule, 0), ['a']);
  schedule.enqueue(key('a'), 5);
  assert.deepEqual([take(schedule, 5), schedule.isAnyDue(5)], [[], false]);
  schedule.plan(key('a'), 1000);
  assert.deepEqual([schedule.isDue(key('a'), 5), take(schedule, 5)], [true, ['a']]);
});

test('of a region that changed, what is scheduled is reconciled at once, and nothing else', () => {
  const schedule = new Schedule();
  schedule.plan(key('a'), 1000);
  schedule.plan(key('b'), 1000);
  schedule.enqueueScheduled([key('a'), key('unknown')], 10);
  assert.deepEqual(take(schedule, 10), ['a']);
});

test('what has nothing left to reconcile gets a pass at once, which removes it', () => {
  const schedule = new Schedule();
  for (const name of ['kept', 'deleted']) schedule.plan(key(name), 1000);
  schedule.reduceTo([key('kept')], 10);
  assert.deepEqual(take(schedule, 10), ['deleted']);
});

test('a sweep during the pass of a deleted environment does not cause another pass, and so no endless series of them', () => {
  const schedule = new Schedule();
  schedule.enqueue(key('deleted'), 10);
  assert.deepEqual(take(schedule, 10), ['deleted']);
  schedule.reduceTo([], 10);
  schedule.remove(key('deleted'));
  assert.equal(schedule.size, 0);
});

test('a region that hangs takes its own workers alone; what waits runs as they get free', async () => {
  const queues = new RegionQueues();
  const released = Promise.withResolvers<void>();
  const done: string[] = [];
  for (let n = 0; n < 20; n++) {
    queues.add('far', async () => {
      await released.promise;
      done.push(`far ${n}`);
    });
  }
  const near = Promise.withResolvers<void>();
  queues.add('near', async () => near.resolve());
  await near.promise;
  assert.deepEqual(done, []);
  const last = Promise.withResolvers<void>();
  queues.add('far', async () => last.resolve());
  released.resolve();
  await last.promise;
  assert.deepEqual(
    done,
    Array.from({ length: 20 }, (_, n) => `far ${n}`),
  );
});

test('stopping drops what waits, and waits for what runs', async () => {
  const queues = new RegionQueues();
  const released = Promise.withResolvers<void>();
  let ran = 0;
  for (let n = 0; n < 40; n++) {
    queues.add('far', async () => {
      await released.promise;
      ran++;
    });
  }
  const stopped = queues.stop();
  released.resolve();
  await stopped;
  assert.equal(ran, 16);
});
