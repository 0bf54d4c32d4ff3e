import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type CanaryPolicy, environmentDefaults } from '../../contract/environments.ts';
import { latencyBoundsMs } from '../../traffic/latency.ts';
import { type Answered, noDetail } from '../../traffic/request-detail.ts';
import { judge, Measured } from './analysis.ts';

const policy = environmentDefaults.canary; // 20 requests, 5 %, no latency limit

/** So many requests, the errors among them, nearly all as fast as given. */
function answered(requests: number, errors = 0, ms = 9, clientErrors = 0): Answered {
  const latency = new Array<number>(latencyBoundsMs.length + 1).fill(0);
  latency[latencyBoundsMs.findIndex((bound) => bound >= ms)] = requests;
  return { requests, errors, clientErrors, latency };
}

/** All of it in one window. */
function measured(sides: { stable: Answered; canary: Answered }, of: CanaryPolicy = policy): Measured {
  const all = new Measured(sides.stable.latency);
  all.add({ at: 0, ...sides }, of, true);
  return all;
}

const with4xx = (requests: number, clientErrors: number): Answered => answered(requests, 0, 9, clientErrors);

for (const [name, stable, canary, limits, expected] of [
  ['enough requests, no errors', answered(200), answered(20), {}, 'good'],
  ['nothing at all', answered(0), answered(0), {}, 'inconclusive'],
  ['fewer than are asked for', answered(200), answered(19), {}, 'inconclusive'],
  ['18 of 18, with a stable side', answered(160), answered(18, 18), {}, 'bad'],
  ['18 of 18, and nothing to compare with', answered(0), answered(18, 18), {}, 'bad'],
  ['8 of 8, and none of stable’s in as many', answered(8), answered(8, 8), {}, 'bad'],
  ['3 of 3 against little', answered(19), answered(3, 3), {}, 'bad'],
  ['1 of 3 against little', answered(19), answered(3, 1), {}, 'inconclusive'],
  ['around the limit, with too few requests to tell', answered(200), answered(100, 5), {}, 'inconclusive'],
  ['around the limit, with many', answered(9000, 450), answered(1000, 50), {}, 'good'],
  ['above the limit, but no worse than stable', answered(2000, 600), answered(1000, 300), {}, 'good'],
  ['within the limit, and far above stable', answered(9000, 1), answered(1000, 49), {}, 'bad'],
  ['within the limit, and a little above stable', answered(90_000, 90), answered(10_000, 40), {}, 'good'],
  ['slow', answered(2000), answered(500, 0, 90), {}, 'bad'],
  ['slow, where people allow it', answered(2000), answered(500, 0, 90), { max_p95_ms: 500 }, 'good'],
  ['slower than the limit', answered(2000), answered(500, 0, 900), { max_p95_ms: 500 }, 'bad'],
  [
    'slower than the limit, as stable is',
    answered(2000, 0, 900),
    answered(500, 0, 900),
    { max_p95_ms: 500 },
    'inconclusive',
  ],
  ['only the canary answers 4xx, and nobody asked to judge them', answered(2000), with4xx(500, 400), {}, 'good'],
  ['only the canary answers 4xx', answered(2000), with4xx(500, 400), { max_client_error_rate: 0.1 }, 'bad'],
  ['both answer 4xx', with4xx(2000, 600), with4xx(500, 150), { max_client_error_rate: 0.1 }, 'good'],
  ['4xx around the limit', with4xx(2000, 100), with4xx(40, 3), { max_client_error_rate: 0.1 }, 'inconclusive'],
  ['4xx, and nothing to compare with', answered(0), with4xx(18, 18), { max_client_error_rate: 0.5 }, 'bad'],
  ['slower by a millisecond or two', answered(2000, 0, 2), answered(500, 0, 5), {}, 'good'],
] as const) {
  test(`${name}: ${expected}`, () => {
    const { verdict, reason } = judge(
      measured({ stable, canary }, { ...policy, ...limits }),
      { ...policy, ...limits },
      1,
    );
    assert.equal(verdict, expected, reason);
  });
}

test('the reason has the numbers', () => {
  const { reason, evidence } = judge(measured({ stable: answered(7310, 21), canary: answered(18, 18) }), policy, 2);
  assert.equal(
    reason,
    'The canary is worse: 18 of 18 requests failed (100 %); of the stable revision 21 of 7,310 requests failed (0.3 %).',
  );
  assert.equal(evidence.needed, 400);
  assert.ok(evidence.errors > 1e6 && evidence.latency <= 1, JSON.stringify(evidence));
});

test('requests that wait for an answer count against the canary, and nothing is good meanwhile', () => {
  const waiting = (requests: number) => {
    const all = measured({ stable: answered(2000), canary: answered(200) });
    all.underWay = { stable: [], canary: answered(requests, 0, 5000).latency };
    return judge(all, policy, 1);
  };
  assert.equal(waiting(0).verdict, 'good');
  assert.equal(waiting(1).verdict, 'inconclusive');
  const { verdict, reason } = waiting(60);
  assert.equal(verdict, 'bad');
  assert.match(reason, /: 60 of 260 requests failed \(23.1 %\), 60 of them still without an answer; /);
});

test('errors of both sides at once prove nothing, also while the canary has another part of the requests', () => {
  const all = new Measured();
  all.add({ at: 0, stable: answered(5000), canary: answered(50) }, policy, true);
  all.add({ at: 10_000, stable: answered(500, 150), canary: answered(500, 150) }, policy, true);
  const { verdict, evidence } = judge(all, policy, 1);
  assert.equal(verdict, 'inconclusive');
  assert.ok(evidence.errors < 1, String(evidence.errors));
});

test('latency that has recovered undoes nothing', () => {
  const all = new Measured(answered(2000).latency);
  const verdictAfter = (canaryMs: number) => {
    for (let n = 0; n < 6; n++)
      all.add({ at: n, stable: answered(200), canary: answered(100, 0, canaryMs) }, policy, true);
    return judge(all, policy, 1).verdict;
  };
  assert.deepEqual([verdictAfter(90), verdictAfter(9)], ['bad', 'good']);
});

test('a good canary that is slower says by how much, and that it is tolerated', () => {
  const { reason } = judge(measured({ stable: answered(9000, 0, 1), canary: answered(1000, 0, 7) }), policy, 1);
  assert.match(
    reason,
    /^The canary is good: 0 of 1,000 .*; its p95 is [\d.]+ ms, the stable revision’s [\d.]+ ms \(less than 10 ms more is tolerated\)\.$/,
  );
});

test('requests that no instance took are no single instance’s fault', () => {
  const canary = answered(20, 20);
  const instances = { ins_1: { requests: 2, failed: 2 }, '': { requests: 18, failed: 18 } };
  const detail = { ...noDetail(), instances, failing: [1, 2, 3] };
  const { verdict, outlier } = judge(measured({ stable: answered(180), canary: { ...canary, detail } }), policy, 1);
  assert.deepEqual([verdict, outlier], ['bad', null]);
});

test('what is proved worse does not rest on one instance of several, nor on a few errors', () => {
  const isNoWorse = (failed: [number, number], replaced: string | null = null) => {
    const instances = { ins_1: { requests: 20, failed: failed[0] }, ins_2: { requests: 20, failed: failed[1] } };
    const canary = { ...answered(40, failed[0] + failed[1]), detail: { ...noDetail(), instances } };
    return judge(measured({ stable: answered(400, 4), canary }), policy, 1, replaced).isNoWorse;
  };
  assert.deepEqual([isNoWorse([8, 0]), isNoWorse([8, 0], 'ins_1'), isNoWorse([1, 1])], [true, true, true]);
  assert.deepEqual([isNoWorse([8, 8]), isNoWorse([8, 8], 'ins_1')], [false, false]);
});

test('4xx that only the canary gives are told, though they are not judged', () => {
  const { verdict, reason, evidence } = judge(
    measured({ stable: answered(2000), canary: with4xx(500, 400) }),
    policy,
    1,
  );
  assert.equal(verdict, 'good');
  assert.match(reason, /More of its answers are 4xx: 400 of 500 requests were answered with 4xx \(80 %\)/);
  assert.equal(evidence.needed, 200, 'a test more would need more');
  assert.equal(
    judge(measured({ stable: answered(0), canary: answered(0) }), { ...policy, max_client_error_rate: 0.1 }, 1).evidence
      .needed,
    300,
  );
});
