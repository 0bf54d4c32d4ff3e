// Every pair of a state and an observation, with the state that follows. A pair that is missing does not compile.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { type DeploymentState, deploymentStates } from '../../contract/deployments.ts';
import { environmentDefaults } from '../../contract/environments.ts';
import type { Answered } from '../../traffic/request-detail.ts';
import { Measured, nothingAnswered } from './analysis.ts';
import { abort, decide, type Observed, type Rollout, type RolloutPolicy } from './rollout.ts';

const now = 1_000_000;
const policy: RolloutPolicy = {
  canary: environmentDefaults.canary,
  autoRollback: true,
  startTimeoutS: 60,
  pullTimeoutS: 1800,
};
/** All of it in one window. */
function measured(stable: Answered, canary: Answered): Measured {
  const all = new Measured(stable.latency);
  all.add({ at: now, stable, canary }, policy.canary, true);
  return all;
}

const calm: Observed = {
  regionAvailable: true,
  image: null,
  lastMessage: null,
  isUnreported: true,
  target: { wanted: 2, healthy: 0, existing: 2, percent: 0 },
  previous: { wanted: 2, healthy: 2 },
  routersBehind: null,
  trouble: null,
  traffic: measured(nothingAnswered(), nothingAnswered()),
  alert: null,
};
const answered = (requests: number, errors = 0): Answered => ({
  ...{ requests, errors },
  clientErrors: 0,
  latency: [requests],
});
const busy = (errorRate: number, requests = 100) => measured(answered(900), answered(requests, requests * errorRate));

const released = {
  target: { wanted: 2, healthy: 2, existing: 2, percent: 100 },
  previous: { wanted: 0, healthy: 0 },
} as const;

const observations = {
  nothing: {},
  regionDown: { regionAvailable: false },
  imageReady: { image: { digest: 'sha256:1' } },
  imageMissing: { image: { code: 'image_not_found', message: 'no' } },
  registryAway: { image: { trouble: { code: 'registry_unreachable', message: 'Refused.' } } },
  registryAwayAsTold: {
    image: { trouble: { code: 'registry_unreachable', message: 'Refused.' } },
    lastMessage: 'Refused. Trying again.',
  },
  registryAwayAndLate: { image: { trouble: { code: 'registry_unreachable', message: 'Refused.' } }, late: true },
  healthy: { target: { wanted: 2, healthy: 2, existing: 2, percent: 0 } },
  healthyWithoutTraffic: {
    target: { wanted: 2, healthy: 2, existing: 2, percent: 0 },
    previous: { wanted: 0, healthy: 2 },
  },
  healthyAndOldGone: released,
  routersBehind: { ...released, routersBehind: { since: now - 9_999 } },
  routersBehindForLong: { ...released, routersBehind: { since: now - 10_000 } },
  routersBehindAndLate: { ...released, routersBehind: { since: now }, late: true },
  targetGone: { target: { wanted: 0, healthy: 0, existing: 0, percent: 0 } },
  targetGoneOldMissing: {
    target: { wanted: 0, healthy: 0, existing: 0, percent: 0 },
    previous: { wanted: 2, healthy: 1 },
  },
  crashed: { trouble: { code: 'crashed', message: 'boom' } },
  outOfMemory: { trouble: { code: 'out_of_memory', message: 'full' } },
  cannotStart: { trouble: { code: 'start_failed', message: 'no program' } },
  noRoom: { trouble: { code: 'unschedulable', message: 'full' } },
  portClosed: { trouble: { code: 'port_not_listening', message: 'deaf' } },
  portClosedAsTold: { trouble: { code: 'port_not_listening', message: 'deaf' }, isUnreported: false },
  portClosedAndLate: { trouble: { code: 'port_not_listening', message: 'deaf' }, isUnreported: false, late: true },
  badTraffic: { traffic: busy(0.5) },
  goodTraffic: { traffic: busy(0) },
  alarmed: { alert: { message: 'it burns', measured: false } },
  alarmedByFew: { alert: { message: 'it burns', measured: true } },
  alarmedByMany: {
    alert: { message: 'it burns', measured: true },
    traffic: measured(answered(90_000), answered(10_000, 50)),
  },
  alarmedLikeStable: {
    alert: { message: 'it burns', measured: true },
    traffic: measured(answered(900, 180), answered(100, 20)),
  },
  alarmedAndBad: { alert: { message: 'it burns', measured: true }, traffic: busy(0.5) },
  alarmedAndCrashed: { alert: { message: 'it burns', measured: false }, trouble: { code: 'crashed', message: 'boom' } },
  alarmedAndLate: { alert: { message: 'it burns', measured: false }, late: true },
  late: { late: true },
  lateRegionDown: { late: true, regionAvailable: false },
} as const satisfies Record<string, Partial<Observed> & { late?: true }>;

type Name = keyof typeof observations;
type Outcome = DeploymentState | 'wait' | `${DeploymentState} ${string}`;

const table: Record<DeploymentState, Record<Name, Outcome>> = {
  queued: row('preparing', { regionDown: 'wait', lateRegionDown: 'failed region_lost' }),
  preparing: row('wait', {
    imageReady: 'starting',
    imageMissing: 'failed image_not_found',
    registryAway: 'preparing',
    routersBehindAndLate: 'failed deadline_exceeded',
    registryAwayAndLate: 'failed registry_unreachable',
    portClosedAndLate: 'failed deadline_exceeded',
    alarmedAndLate: 'failed deadline_exceeded',
    late: 'failed deadline_exceeded',
    lateRegionDown: 'failed region_lost',
  }),
  starting: row('wait', {
    healthy: 'canary',
    healthyWithoutTraffic: 'canary',
    healthyAndOldGone: 'canary',
    routersBehind: 'canary',
    routersBehindForLong: 'canary',
    routersBehindAndLate: 'canary',
    crashed: 'failed crashed',
    outOfMemory: 'failed out_of_memory',
    cannotStart: 'failed start_failed',
    noRoom: 'starting',
    portClosed: 'starting',
    portClosedAndLate: 'failed port_not_listening',
    alarmedAndCrashed: 'failed crashed',
    registryAwayAndLate: 'failed start_timeout',
    alarmedAndLate: 'failed start_timeout',
    late: 'failed start_timeout',
    lateRegionDown: 'failed region_lost',
  }),
  // The step's time is over: it goes on unless something speaks against it.
  canary: row('promoting', {
    crashed: 'aborting crashed',
    outOfMemory: 'aborting out_of_memory',
    cannotStart: 'aborting start_failed',
    badTraffic: 'aborting analysis_failed',
    alarmed: 'aborting alert_fired',
    alarmedByMany: 'aborting alert_fired',
    alarmedAndBad: 'aborting analysis_failed',
    alarmedAndCrashed: 'aborting crashed',
    alarmedAndLate: 'aborting alert_fired',
  }),
  promoting: row('wait', {
    healthyAndOldGone: 'succeeded',
    routersBehindForLong: 'succeeded',
    routersBehindAndLate: 'succeeded',
    crashed: 'aborting crashed',
    outOfMemory: 'aborting out_of_memory',
    cannotStart: 'aborting start_failed',
    portClosedAndLate: 'aborting deadline_exceeded',
    alarmedAndCrashed: 'aborting crashed',
    registryAwayAndLate: 'aborting deadline_exceeded',
    alarmedAndLate: 'aborting deadline_exceeded',
    late: 'aborting deadline_exceeded',
    lateRegionDown: 'aborting region_lost',
  }),
  aborting: row('wait', {
    targetGone: 'failed',
    routersBehindAndLate: 'failed',
    portClosedAndLate: 'failed',
    registryAwayAndLate: 'failed',
    alarmedAndLate: 'failed',
    late: 'failed',
    lateRegionDown: 'failed',
  }),
  succeeded: row('wait', {}),
  failed: row('wait', {}),
  canceled: row('wait', {}),
};

function row(usual: Outcome, others: Partial<Record<Name, Outcome>>): Record<Name, Outcome> {
  const all = Object.fromEntries(Object.keys(observations).map((name) => [name, usual]));
  return { ...all, ...others } as Record<Name, Outcome>;
}

const rolloutIn = (state: DeploymentState, more: Partial<Rollout> = {}): Rollout => ({
  state,
  strategy: 'canary',
  hasPrevious: true,
  percents: [10],
  step: state === 'canary' ? 1 : 0,
  phase: state === 'canary' ? 'baking' : null,
  stepUntil: state === 'canary' ? now : null,
  replaced: null,
  deadlineAt: now + 1000,
  cause: null,
  ...more,
});

const outcome = (step: ReturnType<typeof decide>): Outcome =>
  step === null ? 'wait' : step.failure ? `${step.to} ${step.failure.code}` : step.to;

for (const state of deploymentStates) {
  for (const [name, expected] of Object.entries(table[state])) {
    test(`${state}, ${name}: ${expected}`, () => {
      const { late, ...seen } = observations[name as Name] as Partial<Observed> & { late?: true };
      const rollout = rolloutIn(state, late ? { deadlineAt: now } : {});
      assert.equal(outcome(decide(rollout, { ...calm, ...seen }, policy, now)), expected);
    });
  }
}

test('a pull may take as long as its setting allows, and trouble on the way does not change when that ends', () => {
  const begun = decide(rolloutIn('queued'), calm, policy, now);
  assert.equal(begun?.deadlineAt, now + 1_800_000);
  const deadlineAt = now + 5000;
  const told = decide(rolloutIn('preparing', { deadlineAt }), { ...calm, ...observations.registryAway }, policy, now);
  assert.deepEqual(told, { to: 'preparing', message: 'Refused. Trying again.', deadlineAt });
  const lost = { ...calm, ...observations.registryAwayAndLate, regionAvailable: false };
  assert.equal(decide(rolloutIn('preparing', { deadlineAt: now }), lost, policy, now)?.failure?.code, 'region_lost');
});

test('routers are waited for from the promotion on, however long the instances have been as they are', () => {
  const behind: Observed = { ...calm, ...released, routersBehind: { since: 0 } };
  const { deadlineAt } = decide(rolloutIn('starting', { strategy: 'rolling' }), { ...calm, ...released }, policy, now)!;
  const at = (ms: number) => decide(rolloutIn('promoting', { deadlineAt: deadlineAt! }), behind, policy, now + ms);
  assert.equal(at(9_999), null);
  assert.match(
    at(10_000)!.message,
    /^It serves all traffic, except at routers that did not take it over within 10 s\.$/,
  );
});

test('only a canary with something to compare to goes through canary', () => {
  const healthy = { ...calm, ...observations.healthy };
  for (const more of [{ hasPrevious: false }, { strategy: 'rolling' }, { strategy: 'blue_green' }] as const) {
    assert.equal(decide(rolloutIn('starting', more), healthy, policy, now)?.to, 'promoting');
  }
});

test('a baking canary waits for its time, and for requests while the stable one has some', () => {
  const baking = rolloutIn('canary', { stepUntil: now + 1 });
  assert.equal(decide(baking, { ...calm, traffic: busy(0) }, policy, now), null);
  const few = { ...calm, traffic: busy(0, 3) };
  assert.equal(decide(rolloutIn('canary'), few, policy, now), null);
  const tired = rolloutIn('canary', { deadlineAt: now });
  const lost = decide(tired, { ...few, regionAvailable: false }, policy, now);
  assert.deepEqual([lost?.to, lost?.failure?.code, lost?.cause], ['aborting', 'region_lost', 'deadline']);
});

test('requests that prove nothing until the deadline, or with a stable side as quiet: on_inconclusive decides', () => {
  const few = { ...calm, traffic: busy(0, 3) };
  for (const [rollout, seen] of [
    [rolloutIn('canary', { deadlineAt: now }), few],
    [rolloutIn('canary'), calm],
  ] as const) {
    const outcomes = (['promote', 'abort', 'hold'] as const).map((on_inconclusive) => {
      const step = decide(rollout, seen, { ...policy, canary: { ...policy.canary, on_inconclusive } }, now)!;
      assert.match(step.message, /^Too few requests to tell: /);
      return [step.to, step.failure?.code, step.canary?.phase];
    });
    assert.deepEqual(outcomes, [
      ['promoting', undefined, undefined],
      ['aborting', 'analysis_failed', undefined],
      ['canary', undefined, 'paused'],
    ]);
  }
});

test('a step bakes after its warm-up; what fails, crashes or alarms in the warm-up ends it', () => {
  const slow: RolloutPolicy = { ...policy, canary: { ...policy.canary, warmup_s: 30, bake_s: 60 } };
  const begun = decide(rolloutIn('starting'), { ...calm, ...observations.healthy }, slow, now)!;
  assert.deepEqual([begun.canary?.until, begun.begins], [now + 90_000, true]);
  const warming = rolloutIn('canary', { stepUntil: now + 89_000 });
  assert.equal(decide(warming, { ...calm, traffic: busy(1) }, slow, now)?.failure?.code, 'analysis_failed');
  assert.equal(decide(warming, { ...calm, ...observations.crashed }, slow, now)?.failure?.code, 'crashed');
  assert.equal(decide(warming, { ...calm, ...observations.alarmed }, slow, now)?.cause, 'alert');
});

test('too few requests to tell, of which some failed and none of stable’s: promote is hold', () => {
  const quiet = { ...calm, traffic: measured(answered(10), answered(2, 1)) };
  const step = decide(rolloutIn('canary'), quiet, policy, now);
  assert.equal(step?.canary?.phase, 'paused');
  assert.match(step!.message, /1 of 2 requests failed .* Paused, because only the canary had errors\.$/);
  const both = { ...calm, traffic: measured(answered(10, 1), answered(2, 1)) };
  assert.equal(decide(rolloutIn('canary'), both, policy, now)?.to, 'promoting');
});

test('the instance that has all the errors is replaced, once', () => {
  const detail = (instances: Record<string, { requests: number; failed: number }>) => ({
    ...{ groups: {}, routes: {}, failing: [1, 2, 3], abandoned: 0, waiting: [] },
    instances,
  });
  const canary = {
    ...answered(100, 50),
    detail: detail({ a: { requests: 50, failed: 0 }, b: { requests: 50, failed: 50 } }),
  };
  const seen = { ...calm, traffic: measured(answered(900), canary) };
  const step = decide(rolloutIn('canary'), seen, policy, now);
  assert.deepEqual([step?.to, step?.replaces, step?.canary?.phase], ['canary', 'b', 'baking']);
  assert.match(step!.message, /50 of 50 requests failed \(100 %\), at its other instances 0 of 50 .* Replacing it\.$/);
  const replaced = rolloutIn('canary', { replaced: 'b' });
  assert.equal(decide(replaced, seen, policy, now)?.to, 'promoting', 'the others are good');
  const again = {
    ...canary,
    detail: detail({
      a: { requests: 25, failed: 0 },
      b: { requests: 50, failed: 25 },
      c: { requests: 25, failed: 25 },
    }),
  };
  const worse = { ...calm, traffic: measured(answered(900), again) };
  assert.equal(decide(replaced, worse, policy, now)?.failure?.code, 'analysis_failed', 'the next one is judged');
});

test('an abort whose previous revision has nothing left ends with the new one serving', () => {
  const seen = {
    ...calm,
    target: { wanted: 3, healthy: 3, existing: 3, percent: 100 },
    previous: { wanted: 3, healthy: 0 },
  };
  const late = decide(rolloutIn('aborting', { deadlineAt: now, cause: 'abort' }), seen, policy, now);
  assert.deepEqual([late?.to, late?.goesOnServing], ['canceled', true]);
  assert.equal(decide(rolloutIn('aborting'), seen, policy, now), null, 'it waits for the deadline');
});

test('steps one after the other; manual waits for promote; without auto_rollback a bad one is paused', () => {
  const two = rolloutIn('canary', { percents: [10, 50] });
  assert.equal(decide(two, { ...calm, traffic: busy(0) }, policy, now), null, 'it has no healthy instance');
  const serving = { ...calm, target: { ...calm.target, healthy: 1 } };
  const next = decide(two, { ...serving, traffic: busy(0) }, policy, now);
  assert.deepEqual([next?.to, next?.canary?.step, next?.canary?.phase], ['canary', 2, 'baking']);
  const manual: RolloutPolicy = { ...policy, canary: { ...policy.canary, advance: 'manual' } };
  assert.equal(decide(two, { ...serving, traffic: busy(0) }, manual, now)?.canary?.phase, 'awaiting_approval');
  const lenient: RolloutPolicy = { ...policy, autoRollback: false };
  assert.equal(decide(two, { ...calm, traffic: busy(0.5) }, lenient, now)?.canary?.phase, 'paused');
  const waited = decide(rolloutIn('canary', { phase: 'awaiting_approval', deadlineAt: now }), calm, policy, now);
  assert.equal(waited?.failure?.code, 'approval_timeout');
});

test('an alert ends a canary in every phase, whatever auto_rollback says, and says so', () => {
  const lenient: RolloutPolicy = { ...policy, autoRollback: false };
  const alarmed = { ...calm, ...observations.alarmed };
  for (const phase of ['baking', 'paused', 'awaiting_approval'] as const) {
    for (const one of [policy, lenient]) {
      const step = decide(rolloutIn('canary', { phase, stepUntil: now + 1 }), alarmed, one, now);
      assert.deepEqual(
        [step?.to, step?.cause, step?.failure],
        ['aborting', 'alert', { code: 'alert_fired', message: 'it burns' }],
      );
    }
  }
});

test('an alert about what was measured needs as many requests as the analysis, and leaves to people what it paused', () => {
  const lenient: RolloutPolicy = { ...policy, autoRollback: false };
  const many = { ...calm, ...observations.alarmedByMany };
  const few = { ...calm, ...observations.alarmedByFew };
  const paused = rolloutIn('canary', { phase: 'paused' });
  assert.equal(decide(paused, many, policy, now)?.failure?.code, 'alert_fired');
  assert.equal(decide(paused, many, lenient, now), null);
  assert.equal(decide(paused, few, policy, now), null);
  const baking = rolloutIn('canary', { stepUntil: now + 1 });
  assert.equal(decide(baking, many, lenient, now)?.failure?.code, 'alert_fired');
  assert.equal(decide(baking, few, policy, now), null);
  assert.equal(decide(baking, { ...calm, ...observations.alarmedAndBad }, lenient, now)?.canary?.phase, 'paused');
});

test('abort: queued ends at once, what runs is undone, what ended stays', () => {
  const outcomes = deploymentStates.map((state) => [state, abort(rolloutIn(state), 'ci', now)?.to ?? 'wait']);
  assert.deepEqual(Object.fromEntries(outcomes), {
    queued: 'canceled',
    preparing: 'aborting',
    starting: 'aborting',
    canary: 'aborting',
    promoting: 'aborting',
    aborting: 'wait',
    succeeded: 'wait',
    failed: 'wait',
    canceled: 'wait',
  });
});

test('an aborted deployment ends as canceled, any other undone one as failed', () => {
  const gone = { ...calm, ...observations.targetGone };
  assert.equal(decide(rolloutIn('aborting', { cause: 'abort' }), gone, policy, now)?.to, 'canceled');
  assert.equal(decide(rolloutIn('aborting', { cause: 'analysis' }), gone, policy, now)?.to, 'failed');
});

test('whatever is seen, every unfinished state gets a deadline, and a deadline that has passed always moves on', () => {
  const seen = fc.record({
    regionAvailable: fc.boolean(),
    image: fc.constantFrom(
      null,
      { digest: 'sha256:1' },
      { code: 'image_denied' as const, message: '' },
      { trouble: { code: 'registry_unreachable' as const, message: '' } },
    ),
    lastMessage: fc.constantFrom(null, ' Trying again.'),
    isUnreported: fc.boolean(),
    target: fc.record({ wanted: fc.nat(3), healthy: fc.nat(3), existing: fc.nat(3), percent: fc.nat(100) }),
    previous: fc.record({ wanted: fc.nat(3), healthy: fc.nat(3) }),
    routersBehind: fc.option(fc.record({ since: fc.nat(now) })),
    trouble: fc.constantFrom(null, { code: 'crashed' as const, message: '' }),
    traffic: fc.constantFrom(calm.traffic, busy(0), busy(1)),
    alert: fc.constantFrom(null, { message: '', measured: true }, { message: '', measured: false }),
  });
  fc.assert(
    fc.property(seen, fc.constantFrom(...deploymentStates), fc.boolean(), (observed, state, hasPrevious) => {
      const step = decide(rolloutIn(state, { hasPrevious, deadlineAt: now }), observed, policy, now);
      const ended = ['succeeded', 'failed', 'canceled'].includes(state);
      assert.equal(step === null, ended, `${state} stays for ever`);
      if (step) assert.equal(step.deadlineAt === null, ['succeeded', 'failed', 'canceled'].includes(step.to));
    }),
  );
});
