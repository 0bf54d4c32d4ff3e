// How soon a condition is noticed: the window, the buckets, the interval of evaluations and the storing together.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { measure, next, noObservation, type Rule, type Sample } from './evaluate.ts';

const now = 10_000_000;
const rule = (window_s: number): Rule => ({
  metric: 'error_rate',
  comparator: 'gt',
  threshold: 0.05,
  window_s,
  for_s: 0,
});
const sample = (at: number, requests: number, errors = 0): Sample => ({ at, requests, errors, latency: null });

describe('a revision that begins to fail', () => {
  /** Evaluates every 5 s what was stored up to a second ago; returns how long after the beginning it is noticed. */
  function noticedAfterMs(rate: number, windowS: number, offsetMs: number, perSecond: number): number {
    const beginsAt = now + offsetMs;
    const buckets = new Map<number, Sample>();
    let counted = now - 2 * windowS * 1000;
    let errors = 0;
    for (let nowMs = beginsAt - 5000; ; nowMs += 5000) {
      for (; counted < nowMs - 1000; counted += 1000 / perSecond) {
        const at = Math.floor(counted / 10_000) * 10_000;
        const bucket = buckets.get(at) ?? sample(at, 0);
        errors += counted >= beginsAt ? rate : 0;
        const failed = errors >= 1 ? 1 : 0;
        errors -= failed;
        buckets.set(at, sample(at, bucket.requests + 1, bucket.errors + failed));
      }
      const value = measure(rule(windowS), { ...noObservation, samples: [...buckets.values()] }, nowMs);
      if (next(null, false, value, rule(windowS), nowMs).act === 'fire') return nowMs - beginsAt;
      assert.ok(nowMs < beginsAt + 1000 * windowS + 60_000, 'it is never noticed');
    }
  }

  test('is noticed within the window and 15 s, however much of it fails and whenever that begins', () => {
    for (const rate of [0.06, 0.1, 0.5, 1]) {
      for (const windowS of [10, 60, 300]) {
        for (const offsetMs of [0, 1, 2500, 4999, 5000, 7600, 9999]) {
          const took = noticedAfterMs(rate, windowS, offsetMs, 50);
          assert.ok(took <= windowS * 1000 + 15_000, `${rate} over ${windowS} s: ${took} ms`);
        }
      }
    }
  });

  test('at 100 % the default rule notices within ten seconds', () => {
    for (const offsetMs of [0, 3000, 9000]) assert.ok(noticedAfterMs(1, 60, offsetMs, 10) <= 10_000);
  });
});
