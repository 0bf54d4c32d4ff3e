import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Crashes } from './crashes.ts';
import type { Failure } from './steps.ts';

const key = { projectId: 'prj_1', environment: 'production' };
const crashed: Failure = { code: 'crashed', message: 'exit code 1' };
const minuteMs = 60_000;

test('the wait before the next start doubles with every crash, up to a limit', () => {
  const crashes = new Crashes();
  assert.equal(crashes.nextStartAt(key, 1), 0);
  const waits = Array.from({ length: 8 }, () => {
    crashes.note(key, 1, crashed, [], 1000);
    return crashes.nextStartAt(key, 1) - 1000;
  });
  assert.deepEqual(waits, [500, 1000, 2000, 4000, 8000, 16_000, 30_000, 30_000]);
});

test('the third crash in a row is trouble; any other failure is at once', () => {
  const crashes = new Crashes();
  const trouble = [1, 2, 3].map((nowMs) => {
    crashes.note(key, 1, crashed, ['last words'], nowMs);
    return crashes.troubleOf(key, 1);
  });
  assert.deepEqual(trouble, [null, null, crashed]);
  assert.deepEqual(crashes.logTailOf(key, 1), ['last words']);
  const timedOut: Failure = { code: 'start_timeout', message: 'late' };
  crashes.note(key, 2, timedOut, [], 1);
  assert.deepEqual(crashes.troubleOf(key, 2), timedOut);
});

test('a revision that has stayed up for five minutes starts with a clean slate', () => {
  const crashes = new Crashes();
  for (const nowMs of [1, 2, 3]) crashes.note(key, 1, crashed, [], nowMs);
  crashes.note(key, 1, crashed, [], 6 * minuteMs);
  assert.equal(crashes.troubleOf(key, 1), null);
});

test('old records go when a newer revision crashes; all of them go with the environment', () => {
  const crashes = new Crashes();
  crashes.note(key, 1, crashed, ['old'], 0);
  crashes.note(key, 2, crashed, ['new'], 6 * minuteMs);
  assert.deepEqual([crashes.logTailOf(key, 1), crashes.logTailOf(key, 2)], [[], ['new']]);
  crashes.forget(key);
  assert.deepEqual(crashes.logTailOf(key, 2), []);
});
