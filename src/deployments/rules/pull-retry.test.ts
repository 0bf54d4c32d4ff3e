import assert from 'node:assert/strict';
import { test } from 'node:test';
import { pullRetryMs } from './pull-retry.ts';

test('the wait doubles up to two minutes, and is spread by a fifth', () => {
  const waits = Array.from({ length: 9 }, (_, failures) => pullRetryMs(failures + 1, 0.5));
  assert.deepEqual(waits, [2000, 4000, 8000, 16_000, 32_000, 64_000, 120_000, 120_000, 120_000]);
  assert.deepEqual([pullRetryMs(1, 0), pullRetryMs(1, 1)], [1600, 2400]);
});
