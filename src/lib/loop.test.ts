import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Loop, startLoop } from './loop.ts';

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
