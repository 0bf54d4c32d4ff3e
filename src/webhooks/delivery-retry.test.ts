import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { defaultScheduleMs, retryDelayMs } from './delivery-retry.ts';

test('the schedule of the contract: 5 s to 24 h, then no more', () => {
  const seconds = defaultScheduleMs.map((_, index) => retryDelayMs(index + 1, null, 0.5)! / 1000);
  assert.deepEqual(seconds, [5, 30, 120, 600, 1800, 7200, 18_000, 36_000, 50_400, 72_000, 86_400]);
  assert.equal(retryDelayMs(12, null, 0.5), null);
  assert.equal(retryDelayMs(12, 5000, 0.5), null);
});

test('each wait is the scheduled one ± 20 %', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 11 }), fc.double({ min: 0, max: 1, noNaN: true }), (tried, random) => {
      const ratio = retryDelayMs(tried, null, random)! / defaultScheduleMs[tried - 1]!;
      assert.ok(ratio >= 0.8 && ratio <= 1.2, String(ratio));
    }),
  );
  assert.equal(retryDelayMs(1, null, 0), 4000);
  assert.equal(retryDelayMs(1, null, 1), 6000);
});

test('Retry-After is honoured where it is longer, up to a day', () => {
  assert.equal(retryDelayMs(1, 60_000, 0.5), 60_000);
  assert.equal(retryDelayMs(1, 1000, 0.5), 5000);
  assert.equal(retryDelayMs(1, 1e12, 0.5), 24 * 3600_000);
});
