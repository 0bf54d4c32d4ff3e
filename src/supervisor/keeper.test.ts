import assert from 'node:assert/strict';
import { test } from 'node:test';
import { countEarlyEnds, restartAfterMs } from './keeper.ts';

test('a process that had settled is started again at once', () => {
  assert.equal(countEarlyEnds(7, 60_000), 0);
  assert.equal(restartAfterMs(0), 0);
});

test('one that keeps ending at once is started less and less often, but never given up', () => {
  let ends = 0;
  const waits: number[] = [];
  for (let round = 0; round < 10; round++) {
    ends = countEarlyEnds(ends, round % 2 === 0 ? null : 10);
    waits.push(restartAfterMs(ends));
  }
  assert.deepEqual(waits, [100, 200, 400, 800, 1600, 3200, 6400, 10_000, 10_000, 10_000]);
});
