import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readRetryAfter } from './retry-after.ts';

test('Retry-After is seconds or a date', () => {
  const nowMs = Date.UTC(2026, 10, 15, 8, 0, 0);
  const rows: [string | undefined, number | null][] = [
    ['120', 120_000],
    ['0', 0],
    ['Sun, 15 Nov 2026 08:01:00 GMT', 60_000],
    ['Sun, 15 Nov 2026 07:00:00 GMT', 0],
    ['-5', null],
    ['1.5', null],
    ['soon', null],
    ['2026', 2026_000],
    ['', null],
    [undefined, null],
  ];
  for (const [header, ms] of rows) assert.equal(readRetryAfter(header, nowMs), ms, String(header));
});
