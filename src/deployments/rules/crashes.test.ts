import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Crashes } from './crashes.ts';
import type { Failure } from './rollout.ts';

const key = { projectId: 'prj_1', environment: 'production' };
const crashed: Failure = { code: 'crashed', message: 'exit code 1' };
const minuteMs = 60_000;

/** An instance that was started just now, and ended. */
const end = (nowMs: number, more: { failure?: Failure; logTail?: string[]; startedAt?: number } = {}) => ({
  failure: crashed,
  logTail: [],
  startedAt: nowMs,
  ...more,
});

test('the wait before the next start doubles with every round that failed, up to a limit', () => {
  const crashes = new Crashes();
  assert.equal(crashes.nextStartAt(key, 1), 0);
  const waits = Array.from({ length: 8 }, (_, round) => {
    crashes.note(key, 1, end(1000 + round), 1000 + round);
    return crashes.nextStartAt(key, 1) - (1000 + round);
  });
  assert.deepEqual(waits, [500, 1000, 2000, 4000, 8000, 16_000, 30_000, 30_000]);
});

test('twenty instances of one round that end, at once or one after another, are one failure', () => {
  const crashes = new Crashes();
  for (let n = 0; n < 20; n++) crashes.note(key, 1, end(0, { startedAt: n }), 1000 + n);
  assert.equal(crashes.nextStartAt(key, 1), 1500);
  assert.equal(crashes.troubleOf(key, 1), null);
  crashes.note(key, 1, end(0, { startedAt: 1500 }), 1600);
  for (let n = 0; n < 20; n++) crashes.note(key, 1, end(0, { startedAt: 1501 + n }), 1600 + n);
  assert.equal(crashes.nextStartAt(key, 1), 2600);
});

test('the third failed round in a row is trouble; any other failure is at once', () => {
  const crashes = new Crashes();
  const trouble = [1, 2, 3].map((nowMs) => {
    crashes.note(key, 1, end(nowMs, { logTail: ['last words'] }), nowMs);
    return crashes.troubleOf(key, 1);
  });
  assert.deepEqual(trouble, [null, null, crashed]);
  assert.deepEqual(crashes.logTailOf(key, 1), ['last words']);
  const timedOut: Failure = { code: 'start_timeout', message: 'late' };
  crashes.note(key, 2, end(1, { failure: timedOut }), 1);
  assert.deepEqual(crashes.troubleOf(key, 2), timedOut);
});

test('a revision that has stayed up for five minutes starts with a clean slate', () => {
  const crashes = new Crashes();
  for (const nowMs of [1, 2, 3]) crashes.note(key, 1, end(nowMs), nowMs);
  crashes.note(key, 1, end(4), 6 * minuteMs);
  assert.equal(crashes.troubleOf(key, 1), null);
});

test('old records go when a newer revision crashes; all of them go with the environment', () => {
  const crashes = new Crashes();
  crashes.note(key, 1, end(0, { logTail: ['old'] }), 0);
  crashes.note(key, 2, end(0, { logTail: ['new'] }), 6 * minuteMs);
  assert.deepEqual([crashes.logTailOf(key, 1), crashes.logTailOf(key, 2)], [[], ['new']]);
  crashes.forget(key);
  assert.deepEqual(crashes.logTailOf(key, 2), []);
});
