import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { capOf, cellMs, retryAfterS, stateOf } from './rate-limit.ts';

const limit = 600;

test('a fresh window admits the whole limit, and says when its cell ends', () => {
  const state = stateOf(limit, { previous: 0, current: 0 }, 90_000);
  assert.deepEqual(state, { limit, remaining: 600, resetAtS: 120 });
});

test('halfway through a cell half of the previous one counts', () => {
  assert.equal(capOf(limit, 400, 30_000), 400);
});

test('Retry-After is the first whole second that admits', () => {
  const usage = fc.record({
    previous: fc.integer({ min: 0, max: limit }),
    current: fc.integer({ min: 0, max: limit }),
  });
  fc.assert(
    fc.property(usage, fc.integer({ min: 0, max: cellMs - 1 }), (used, intoCell) => {
      const now = 1_000 * cellMs + intoCell;
      fc.pre(capOf(limit, used.previous, now) <= used.current);
      const wait = retryAfterS(limit, used, now);
      const admits = (atMs: number): boolean => {
        const cells = Math.floor(atMs / cellMs) - 1_000;
        if (cells === 0) return capOf(limit, used.previous, atMs) > used.current;
        return capOf(limit, cells === 1 ? used.current : 0, atMs) > 0;
      };
      assert.ok(admits(now + wait * 1000), `not admitted after ${wait} s`);
      if (wait > 1) assert.ok(!admits(now + (wait - 1) * 1000 - 2), `admitted before ${wait} s`);
    }),
    { numRuns: 2000 },
  );
});
