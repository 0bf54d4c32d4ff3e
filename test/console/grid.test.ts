// Gridlines of charts have round values, in the unit that the axis shows.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { gridOf } from '../../console/src/components/charts/grid.ts';
import { bytes, mebibyte, milliseconds, percent, perSecond } from '../../console/src/format.ts';

function labels(max: number | null, atLeast: number, unit: number, format: (value: number) => string): string[] {
  const { top, step } = gridOf(max, atLeast, unit);
  return Array.from({ length: Math.round(top / step) + 1 }, (_, line) => format(line * step));
}

for (const [max, atLeast, unit, format, expected] of [
  [0.003, 0.01, 1, percent, ['0 %', '0.5 %', '1 %']],
  [1, 0.01, 1, percent, ['0 %', '50 %', '100 %']],
  [54, 10, 1, milliseconds, ['0 ms', '20 ms', '40 ms', '60 ms']],
  [3.3, 1, 1, perSecond, ['0/s', '1/s', '2/s', '3/s', '4/s']],
  [null, 1, 1, perSecond, ['0/s', '0.5/s', '1/s']],
  [199 * mebibyte, mebibyte, mebibyte, bytes, ['0 MiB', '50 MiB', '100 MiB', '150 MiB', '200 MiB']],
  [900 * mebibyte, mebibyte, mebibyte, bytes, ['0 MiB', '256 MiB', '512 MiB', '768 MiB', '1 GiB']],
  [3000 * mebibyte, mebibyte, mebibyte, bytes, ['0 MiB', '1 GiB', '2 GiB', '3 GiB']],
] as const) {
  test(`up to ${max === null ? 'nothing' : format(max)}: ${expected.join(', ')}`, () =>
    assert.deepEqual(labels(max, atLeast, unit, format), expected));
}
