import assert from 'node:assert/strict';
import { test } from 'node:test';
import { pino } from 'pino';
import { until } from '../../test/helpers/wait.ts';
import type { Timers } from './clock.ts';
import { createLoops, type Loop, startLoop } from './loops.ts';

const log = pino({ level: 'silent' });

/** Time passes where the test says so; a wait never ends by itself. */
class HandTimers implements Timers {
  nowMs = 0;
  now = () => this.nowMs;
  after = () => () => {};
}

test('a loop whose step does not end within its limit is stuck, until the step ends', async () => {
  const timers = new HandTimers();
  const loops = createLoops(log, timers);
  const step = Promise.withResolvers<void>();
  const stuck = loops.start({ name: 'stuck', intervalMs: 10, limitMs: 1000, step: () => step.promise });
  const idle = loops.start({ name: 'idle', intervalMs: 10, limitMs: 1000, step: async () => {} });
  await new Promise(setImmediate);
  timers.nowMs = 1000;
  assert.deepEqual(loops.stuck(), []);
  timers.nowMs = 1500;
  assert.deepEqual(loops.stuck(), [{ name: 'stuck', forMs: 1500 }]);
  step.resolve();
  await Promise.all([stuck.stop(), idle.stop()]);
  assert.deepEqual(loops.stuck(), []);
});

test('a step that throws ends like any other, and the next one gets the whole limit', async () => {
  const timers = new HandTimers();
  const loops = createLoops(log, timers);
  let steps = 0;
  const second = Promise.withResolvers<void>();
  const step = async () => {
    if (++steps === 1) throw new Error('failed');
    await second.promise;
  };
  const loop = loops.start({ name: 'failing', intervalMs: 10, limitMs: 1000, step });
  await new Promise(setImmediate);
  timers.nowMs = 5000;
  assert.deepEqual(loops.stuck(), []);
  loop.wake();
  await until('the second step', () => steps === 2);
  timers.nowMs = 5900;
  assert.deepEqual(loops.stuck(), []);
  timers.nowMs = 6100;
  assert.deepEqual(loops.stuck(), [{ name: 'failing', forMs: 1100 }]);
  second.resolve();
  await loop.stop();
});

test('a loop that is being stopped while its step hangs is still stuck', async () => {
  const timers = new HandTimers();
  const loops = createLoops(log, timers);
  const step = Promise.withResolvers<void>();
  const loop = loops.start({ name: 'hangs', intervalMs: 10, limitMs: 1000, step: () => step.promise });
  const stopped = loop.stop();
  timers.nowMs = 2000;
  assert.equal(loops.stuck().length, 1);
  step.resolve();
  await stopped;
});

/** Promises get their turn so often before the event loop does. */
async function microtasks(count: number): Promise<void> {
  for (let i = 0; i < count; i++) await null;
}

for (const [when, wake] of [
  ['during a step', async (loop: Loop) => loop.wake()],
  ['while it rests', async (loop: Loop) => microtasks(10).then(() => loop.wake())],
] as const) {
  test(`a loop that is always woken ${when} leaves the event loop to others in between`, async () => {
    let steps = 0;
    const { promise, resolve } = Promise.withResolvers<number>();
    const step = async () => {
      await microtasks(1);
      // Without an end, a loop that never lets go would hang this process.
      if (++steps < 10_000) void wake(loop);
      else resolve(steps);
    };
    const loop = startLoop({ intervalMs: 60_000, step, onError: assert.ifError });
    setImmediate(() => resolve(steps));
    const stepsBefore = await promise;
    await loop.stop();
    assert.ok(stepsBefore < 10, `others had to wait for ${stepsBefore} steps`);
  });
}
