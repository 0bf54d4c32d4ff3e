import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { latencyBoundsMs, latencyIndexOf, quantileMs } from './latency.ts';
import { bucketMs, bucketOf, TrafficCounter } from './measurements.ts';

const latency = (counts: Record<number, number>): number[] =>
  Array.from({ length: latencyBoundsMs.length + 1 }, (_, index) => counts[index] ?? 0);

describe('the quantile of a histogram', () => {
  test('of nothing there is none', () => assert.equal(quantileMs(latency({}), 0.95), null));

  test('is interpolated within its bucket', () => {
    assert.equal(quantileMs(latency({ 0: 100 }), 0.5), 0.5);
    assert.equal(quantileMs(latency({ 5: 100 }), 0.5), 8.5);
    assert.equal(quantileMs(latency({ 0: 95, 10: 5 }), 0.95), 1);
  });

  test('beyond the last bound is the last bound', () => {
    assert.equal(quantileMs(latency({ [latencyBoundsMs.length]: 3 }), 0.95), 30_000);
  });

  test('lies in the bucket of the value that has that rank', () => {
    const times = fc.array(fc.integer({ min: 0, max: 29_999 }), { minLength: 1, maxLength: 200 });
    fc.assert(
      fc.property(times, fc.constantFrom(0.5, 0.9, 0.95, 0.99), (all, share) => {
        const counts = latency({});
        for (const ms of all) counts[latencyIndexOf(ms)]!++;
        const exact = all.sort((a, b) => a - b)[Math.max(0, Math.ceil(share * all.length) - 1)]!;
        const estimate = quantileMs(counts, share)!;
        const index = latencyIndexOf(exact);
        assert.ok(estimate <= latencyBoundsMs[index]! && estimate >= (latencyBoundsMs[index - 1] ?? 0));
      }),
    );
  });
});

describe('latency buckets', () => {
  test('a duration falls into the first whose bound it does not exceed', () => {
    for (const [index, bound] of latencyBoundsMs.entries()) {
      assert.equal(latencyIndexOf(bound), index);
      assert.equal(latencyIndexOf(bound + 0.5), index + 1);
    }
    assert.equal(latencyIndexOf(-3), 0); // the clock was set back
  });
});

describe('counting', () => {
  const start = 1_000_000 * bucketMs;

  function counting() {
    const clock = { ms: start, now: () => clock.ms };
    const counter = new TrafficCounter(clock);
    const take = () => {
      const batch = counter.take();
      batch?.settle(true);
      return batch?.measurements ?? [];
    };
    return { clock, counter, take, revision: counter.of('prj', 'production', 1) };
  }

  test('only what changed is given, in absolute numbers', () => {
    const { clock, take, revision } = counting();
    revision.countRequest(clock.ms, 4, 'ok');
    revision.countRequest(clock.ms, 4, 'error');
    revision.countRequest(clock.ms, 4, 'client_error');
    const [first, ...rest] = take();
    assert.deepEqual(rest, []);
    assert.deepEqual(first, {
      project: 'prj',
      environment: 'production',
      revision: 1,
      at: start,
      requests: 3,
      errors: 1,
      clientErrors: 1,
      latency: latency({ 3: 3 }),
    });
    assert.deepEqual(take(), []);
    clock.ms += bucketMs - 1;
    revision.countRequest(clock.ms, 4, 'ok');
    assert.equal(take()[0]!.requests, 4);
    assert.equal(first.requests, 3, 'what was given does not change any more');
  });

  test('every ten seconds begin a bucket', () => {
    const { clock, take, revision } = counting();
    for (let i = 0; i < 3; i++) {
      revision.countRequest(clock.ms, 1, 'ok');
      clock.ms += bucketMs;
    }
    const taken = take();
    assert.deepEqual(
      taken.map(({ at }) => at),
      [0, 1, 2].map((n) => start + n * bucketMs),
    );
    assert.ok(taken.every(({ at, requests }) => at === bucketOf(at) && requests === 1));
  });

  test('what was taken is kept for a minute and then forgotten', () => {
    const { clock, take, revision } = counting();
    revision.countRequest(clock.ms, 1, 'ok');
    take();
    clock.ms += bucketMs + 60_000;
    assert.deepEqual(take(), []);
    revision.countRequest(start, 1, 'ok');
    assert.equal(take()[0]!.requests, 2, 'kept');
    clock.ms += 1;
    take();
    revision.countRequest(start, 1, 'ok');
    assert.equal(take()[0]!.requests, 1, 'forgotten');
  });

  test('what was never taken is not forgotten', () => {
    const { clock, take, revision } = counting();
    revision.countRequest(clock.ms, 1, 'ok');
    clock.ms += 3_600_000;
    assert.equal(take().length, 1);
  });

  test('a revision that left the table is still given', () => {
    const { take, clock, revision } = counting();
    revision.retired = true;
    revision.countRequest(clock.ms, 1, 'ok');
    assert.equal(take().length, 1);
  });

  test('what was not stored is given again, with what came since', () => {
    const { counter, take, clock, revision } = counting();
    revision.countRequest(clock.ms, 1, 'ok');
    counter.take()!.settle(false);
    assert.equal(take()[0]!.requests, 1);
    assert.equal(counter.take(), null);
    revision.countRequest(clock.ms, 1, 'ok');
    const lost = counter.take()!;
    revision.countRequest(clock.ms, 1, 'ok');
    clock.ms += 3_600_000;
    counter.take()!.settle(true);
    lost.settle(false);
    const [again, ...rest] = take();
    assert.deepEqual([again!.requests, rest], [3, []]);
  });

  test('beyond what fits the oldest are dropped, and counted', () => {
    const { counter, take, clock } = counting();
    for (let i = 0; i < 50_100; i++) counter.of('prj', 'production', i).countRequest(clock.ms, 1, 'ok');
    assert.equal(take()[0]!.revision, 100);
    assert.deepEqual([counter.takeDropped(), counter.takeDropped()], [100, 0]);
  });

  test('an answer that breaks off is an error without a request', () => {
    const { take, clock, revision } = counting();
    revision.countRequest(clock.ms, 1, 'ok');
    revision.countBrokenOff(clock.ms);
    const [{ requests, errors } = { requests: 0, errors: 0 }] = take();
    assert.deepEqual([requests, errors], [1, 1]);
  });
});

test('requests that go on waiting are reported once, so that taking everything ends', () => {
  const clock = { now: () => 5000 };
  const counter = new TrafficCounter(clock, clock);
  const revision = counter.of('p', 'e', 1);
  revision.countRequest(5000, 1, 'ok', { bucket: 1, pattern: '/', instance: 'i' });
  revision.open(0);
  let taken = 0;
  for (let batch = counter.take(); batch !== null && taken < 5; batch = counter.take()) {
    taken++;
    batch.settle(true);
  }
  assert.equal(taken, 1);
});
