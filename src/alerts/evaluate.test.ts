import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import type { AlertMetric } from '../contract/alert-rules.ts';
import { latencyBoundsMs } from '../traffic/latency.ts';
import {
  isDue,
  measure,
  type Next,
  next,
  noObservation,
  type Observation,
  type Rule,
  type Sample,
  type Watch,
} from './evaluate.ts';

const now = 10_000_000;
const day = 86_400_000;
const rule = (more: Partial<Rule> = {}): Rule => ({
  metric: 'error_rate',
  comparator: 'gt',
  threshold: 0.05,
  window_s: 60,
  for_s: 0,
  ...more,
});
const sample = (at: number, requests: number, errors = 0, latency: number[] | null = null): Sample => ({
  at,
  requests,
  errors,
  latency,
});
const seenOf = (...samples: Sample[]): Observation => ({ ...noObservation, samples });
const latencyAt = (index: number, count: number): number[] =>
  Array.from({ length: latencyBoundsMs.length + 1 }, (_, i) => (i === index ? count : 0));

describe('measure', () => {
  const rows: [string, Partial<Rule>, Observation, number | null][] = [
    ['errors of all requests', {}, seenOf(sample(now - 20_000, 60, 6), sample(now - 10_000, 40, 4)), 0.1],
    ['no requests: no value', {}, noObservation, null],
    ['no requests within the window: no value', {}, seenOf(sample(now - 70_000, 10, 10)), null],
    ['an answer that broke off is no more than one error', {}, seenOf(sample(now - 5000, 1, 3)), 1],
    ['broken off without requests: no value', {}, seenOf(sample(now - 5000, 0, 3)), null],
    ['a bucket of the future does not count', {}, seenOf(sample(now + 1, 10, 10)), null],
    ['a bucket that begins now does', {}, seenOf(sample(now, 10, 10)), 1],
    ['half a bucket counts half', {}, seenOf(sample(now - 65_000, 100, 100), sample(now - 10_000, 50, 0)), 0.5],
    ['rounded', {}, seenOf(sample(now, 3, 1)), 0.333333],
    ['p95', { metric: 'p95_ms' }, seenOf(sample(now, 100, 0, latencyAt(5, 100))), 9.85],
    ['p95 of nothing', { metric: 'p95_ms' }, noObservation, null],
    [
      'p95 of what has left the window',
      { metric: 'p95_ms' },
      seenOf(sample(now - 70_000, 9, 0, latencyAt(5, 9))),
      null,
    ],
    ['requests a second', { metric: 'request_rate' }, { ...seenOf(sample(now, 30)), healthyInstances: 1 }, 0.5],
    ['none of them', { metric: 'request_rate' }, { ...noObservation, healthyInstances: 0 }, 0],
    ['nothing is active', { metric: 'request_rate' }, seenOf(sample(now, 30)), null],
    ['ends', { metric: 'restarts' }, { ...noObservation, restarts: 3 }, 3],
    ['instances', { metric: 'healthy_instances' }, { ...noObservation, healthyInstances: 0 }, 0],
    ['nothing should run', { metric: 'healthy_instances' }, noObservation, null],
    ['days', { metric: 'certificate_days_left' }, { ...noObservation, notAfterMs: now + 2.5 * day }, 2.5],
    [
      'days, never rounded up',
      { metric: 'certificate_days_left' },
      { ...noObservation, notAfterMs: now + 7 * day - 1 },
      6.99,
    ],
    ['ended', { metric: 'certificate_days_left' }, { ...noObservation, notAfterMs: now - day }, -1],
    ['no certificate', { metric: 'certificate_days_left' }, noObservation, null],
    ['external', { metric: 'external' }, { ...seenOf(sample(now, 1, 1)), healthyInstances: 0, notAfterMs: 0 }, null],
  ];
  for (const [name, more, seen, expected] of rows) {
    test(`${more.metric ?? 'error_rate'}: ${name}`, () => assert.equal(measure(rule(more), seen, now), expected));
  }

  test('who has just come does not take the time before for a time without requests', () => {
    const early = (more: Partial<Rule>, watchedMs: number, seen = noObservation) =>
      measure(rule(more), seen, now, watchedMs);
    for (const metric of ['error_rate', 'p95_ms', 'request_rate'] as const) {
      const active = { ...noObservation, healthyInstances: 1 };
      const calm = metric === 'request_rate' ? 0 : null;
      assert.equal(early({ metric, window_s: 10 }, 9999, active), undefined);
      assert.equal(early({ metric, window_s: 10 }, 10_000, active), calm);
      assert.equal(early({ metric, window_s: 86_400 }, 59_999, active), undefined);
      assert.equal(early({ metric, window_s: 86_400 }, 60_000, active), calm);
    }
    assert.equal(early({}, 0, seenOf(sample(now, 10, 10))), 1, 'what is seen counts at once');
    assert.equal(early({ metric: 'healthy_instances' }, 0), null);
  });

  test('whole buckets may come as one', () => {
    const apart = seenOf(sample(now - 30_000, 10, 1), sample(now - 20_000, 20, 2), sample(now - 10_000, 30, 3));
    const together = seenOf(sample(now - 30_000, 60, 6));
    assert.equal(measure(rule(), apart, now), measure(rule(), together, now));
  });
});

/** Every pair of what was remembered and what is seen. `for_s` is 10, `since` 4 s or 10 s ago. */
describe('next', () => {
  const held = rule({ for_s: 10 });
  const [bad, good] = [0.06, 0.05];
  const short = now - 4000;
  const long = now - 10_000;
  const nothing: Next = { watch: null, act: null };
  const rows: [string, Watch | null, boolean, number | null, Next][] = [
    ['nothing, good', null, false, good, nothing],
    ['nothing, no value', null, false, null, nothing],
    ['nothing, bad: waits', null, false, bad, { watch: { holds: true, since: now }, act: null }],
    [
      'held a little, bad: waits on',
      { holds: true, since: short },
      false,
      bad,
      { watch: { holds: true, since: short }, act: null },
    ],
    [
      'held long enough, bad: fires',
      { holds: true, since: long },
      false,
      bad,
      { watch: { holds: true, since: long }, act: 'fire' },
    ],
    ['held, good: forgotten', { holds: true, since: long }, false, good, nothing],
    ['held, no value: forgotten', { holds: true, since: long }, false, null, nothing],
    [
      'firing, bad: once is enough',
      { holds: true, since: long },
      true,
      bad,
      { watch: { holds: true, since: long }, act: null },
    ],
    ['firing, nothing remembered, bad', null, true, bad, { watch: { holds: true, since: now }, act: null }],
    [
      'firing, good: waits',
      { holds: true, since: long },
      true,
      good,
      { watch: { holds: false, since: now }, act: null },
    ],
    [
      'firing, no value: waits',
      { holds: true, since: long },
      true,
      null,
      { watch: { holds: false, since: now }, act: null },
    ],
    ['firing, nothing remembered, good: waits', null, true, good, { watch: { holds: false, since: now }, act: null }],
    [
      'firing, good a little: waits on',
      { holds: false, since: short },
      true,
      good,
      { watch: { holds: false, since: short }, act: null },
    ],
    ['firing, good long enough: resolved', { holds: false, since: long }, true, good, { watch: null, act: 'resolve' }],
    [
      'firing, no value long enough: resolved',
      { holds: false, since: long },
      true,
      null,
      { watch: null, act: 'resolve' },
    ],
    [
      'firing, good a little, bad again: goes on',
      { holds: false, since: short },
      true,
      bad,
      { watch: { holds: true, since: now }, act: null },
    ],
    ['left from before, not firing, good', { holds: false, since: long }, false, good, nothing],
    [
      'left from before, not firing, bad',
      { holds: false, since: long },
      false,
      bad,
      { watch: { holds: true, since: now }, act: null },
    ],
    [
      'the clock went back: the wait begins anew',
      { holds: true, since: now + 9999 },
      false,
      bad,
      { watch: { holds: true, since: now }, act: null },
    ],
    [
      'the clock went back while it was good',
      { holds: false, since: now + 9999 },
      true,
      good,
      { watch: { holds: false, since: now }, act: null },
    ],
  ];
  for (const [name, before, firing, value, expected] of rows) {
    test(name, () => assert.deepEqual(next(before, firing, value, held, now), expected));
  }

  test('as long as the value is not known, everything stays as it is', () => {
    for (const before of [null, { holds: true, since: long }, { holds: false, since: long }]) {
      for (const firing of [false, true]) {
        assert.deepEqual(next(before, firing, undefined, held, now), { watch: before, act: null });
      }
    }
  });

  test('the threshold itself is not bad', () => {
    const acts = (comparator: 'gt' | 'lt', value: number) => next(null, false, value, rule({ comparator }), now).act;
    assert.deepEqual(
      [acts('gt', 0.05), acts('gt', 0.0501), acts('lt', 0.05), acts('lt', 0.0499)],
      [null, 'fire', null, 'fire'],
    );
  });

  test('without for_s it fires and is resolved at once', () => {
    assert.equal(next(null, false, 1, rule(), now).act, 'fire');
    assert.equal(next({ holds: true, since: now }, true, 0, rule(), now).act, 'resolve');
  });

  test('fired and resolved always take turns, and neither comes before its wait is over', () => {
    const evaluations = fc.array(fc.record({ bad: fc.boolean(), laterMs: fc.integer({ min: -3000, max: 8000 }) }));
    fc.assert(
      fc.property(evaluations, fc.integer({ min: 0, max: 20 }), (all, forS) => {
        let watch: Watch | null = null;
        let firing = false;
        let nowMs = now;
        let sameSince = now;
        let last: boolean | null = null;
        for (const { bad, laterMs } of all) {
          nowMs += laterMs;
          if (bad !== last) sameSince = nowMs;
          last = bad;
          sameSince = Math.min(sameSince, nowMs);
          const step: Next = next(watch, firing, bad ? 1 : null, rule({ for_s: forS }), nowMs);
          if (step.act) {
            assert.equal(step.act, firing ? 'resolve' : 'fire');
            assert.equal(bad, !firing);
            assert.ok(nowMs - sameSince >= forS * 1000);
            firing = !firing;
          } else if (bad !== firing) assert.ok(nowMs - sameSince < forS * 1000, 'it waits no longer than it has to');
          watch = step.watch;
        }
      }),
    );
  });
});

test('every metric has a measure', () => {
  const metrics: Record<AlertMetric, true> = {
    error_rate: true,
    p95_ms: true,
    request_rate: true,
    healthy_instances: true,
    restarts: true,
    certificate_days_left: true,
    external: true,
  };
  for (const metric of Object.keys(metrics) as AlertMetric[])
    assert.equal(measure(rule({ metric }), noObservation, now), null);
});

test('a rule with a long window has its turn every hundredth of it, a short one always', () => {
  const turns = (windowS: number, id: string) => {
    let count = 0;
    for (let ms = 0; ms < 3_600_000; ms += 5000) if (isDue({ id, window_s: windowS }, ms - 5000, ms)) count++;
    return count;
  };
  assert.equal(turns(60, 'rul_01k9xw3v5qfk2t8m7c4b6d9e0h'), 720);
  assert.equal(turns(500, 'rul_01k9xw3v5qfk2t8m7c4b6d9e0h'), 720);
  for (const id of ['rul_01k9xw3v5qfk2t8m7c4b6d9e0h', 'rul_01k9xw3v5qfk2t8m7c4b6d9e1x']) {
    assert.ok([99, 100, 101].includes(turns(3600, id)), `${turns(3600, id)}`);
    assert.ok([4, 5].includes(turns(86_400, id)));
  }
});
