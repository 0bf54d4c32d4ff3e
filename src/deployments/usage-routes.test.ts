import assert from 'node:assert/strict';
import { test } from 'node:test';
import { pointsOf } from './usage-routes.ts';

const span = { fromMs: 100_000, toMs: 150_000, stepMs: 10_000 };
const step = (index: number, at: number, cpuMs: number, memoryBytes = 1) => ({
  ...{ instance: 'i', revision: 1, step: index, memoryBytes },
  first: { at, cpuMs },
  last: { at, cpuMs },
});

test('CPU is the difference to the measurement before, also to the one before the span', () => {
  const points = pointsOf([step(0, 95_000, 1000), step(1, 105_000, 6000), step(2, 115_000, 8500)], span);
  assert.deepEqual(
    points.map(({ cpus }) => cpus),
    [0.5, 0.25, null, null, null],
  );
});

test('of a step that begins with its instance, or follows a gap, CPU is the difference within it', () => {
  const many = { ...step(2, 111_000, 100), last: { at: 119_000, cpuMs: 2100 } };
  const points = pointsOf([step(0, 10_000, 7), many], span);
  assert.equal(points[1]?.cpus, 0.25);
});

test('no CPU for the first measurement, after a long gap, and where the count began anew', () => {
  const after = pointsOf([step(1, 105_000, 1000), step(2, 115_000, 10), step(3, 125_000, 20)], span);
  assert.deepEqual(
    after.map(({ cpus }) => cpus),
    [null, null, 0.001, null, null],
  );
  const gap = pointsOf([step(0, 10_000, 1000), step(5, 145_000, 2000, 7)], span);
  assert.deepEqual(gap.at(-1), { at: new Date(140_000).toISOString(), memory_bytes: 7, cpus: null });
});
