import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { deploymentStates, strategies } from '../../contract/deployments.ts';
import { desiredOf, type Situation } from './desired.ts';

const base: Situation = {
  state: 'promoting',
  strategy: 'rolling',
  hasPrevious: true,
  isProvedBad: false,
  percent: 10,
  replicas: 4,
  targetHealthy: 0,
  targetExisting: 0,
  previousHealthy: 4,
};

test('rolling: one more each time, as many old ones go as new ones have come', () => {
  const steps = [0, 1, 2, 3, 4].map((targetHealthy) => desiredOf({ ...base, targetHealthy }));
  assert.deepEqual(steps, [
    { target: 1, previous: 4, targetPercent: 0 },
    { target: 2, previous: 3, targetPercent: 25 },
    { target: 3, previous: 2, targetPercent: 50 },
    { target: 4, previous: 1, targetPercent: 75 },
    { target: 4, previous: 0, targetPercent: 100 },
  ]);
});

test('blue_green: all new ones first, then one switch', () => {
  const blue = { ...base, strategy: 'blue_green' } as const;
  assert.deepEqual(desiredOf({ ...blue, state: 'starting' }), { target: 4, previous: 4, targetPercent: 0 });
  assert.deepEqual(desiredOf({ ...blue, targetHealthy: 3 }), { target: 4, previous: 4, targetPercent: 0 });
  assert.deepEqual(desiredOf({ ...blue, targetHealthy: 4 }), { target: 4, previous: 0, targetPercent: 100 });
});

test('more replicas, asked for when the old ones have left: they get no share again', () => {
  for (const strategy of strategies) {
    const left = { ...base, strategy, targetHealthy: 3, previousHealthy: 0 };
    assert.equal(desiredOf(left).targetPercent, 100);
    assert.ok(desiredOf({ ...left, targetHealthy: 0 }).targetPercent < 100, 'none of both serves');
  }
});

test('canary: as many instances as its share needs', () => {
  const canary = { ...base, strategy: 'canary', state: 'canary' } as const;
  assert.deepEqual(desiredOf(canary), { target: 1, previous: 4, targetPercent: 10 });
  assert.deepEqual(desiredOf({ ...canary, percent: 60 }), { target: 3, previous: 4, targetPercent: 60 });
});

test('aborting: the old ones come back before the new ones go', () => {
  const aborting = { ...base, state: 'aborting', targetHealthy: 3, targetExisting: 3 } as const;
  assert.deepEqual(desiredOf({ ...aborting, previousHealthy: 1 }), { target: 3, previous: 4, targetPercent: 75 });
  assert.deepEqual(desiredOf({ ...aborting, previousHealthy: 3 }), { target: 3, previous: 4, targetPercent: 25 });
  assert.deepEqual(desiredOf({ ...aborting, previousHealthy: 4 }), { target: 0, previous: 4, targetPercent: 0 });
  assert.deepEqual(desiredOf({ ...aborting, previousHealthy: 0 }), { target: 3, previous: 4, targetPercent: 100 });
});

test('aborting: what was found to be worse gets only what nothing else can serve', () => {
  const bad = { ...base, state: 'aborting', targetHealthy: 3, targetExisting: 3, isProvedBad: true } as const;
  assert.equal(desiredOf({ ...bad, previousHealthy: 1 }).targetPercent, 0);
  assert.equal(desiredOf({ ...bad, previousHealthy: 0 }).targetPercent, 100);
  assert.equal(desiredOf({ ...bad, previousHealthy: 0, targetHealthy: 0 }).targetPercent, 0);
});

test('while both revisions are at work, what is wanted is never fewer healthy instances than before', () => {
  const situation = fc.record({
    state: fc.constantFrom(...deploymentStates),
    strategy: fc.constantFrom(...strategies),
    hasPrevious: fc.constant(true),
    isProvedBad: fc.boolean(),
    percent: fc.integer({ min: 1, max: 99 }),
    replicas: fc.integer({ min: 1, max: 20 }),
    targetHealthy: fc.nat(20),
    targetExisting: fc.nat(20),
    previousHealthy: fc.nat(20),
  });
  fc.assert(
    fc.property(situation, (s) => {
      const { target, previous, targetPercent } = desiredOf(s);
      assert.ok(previous + Math.min(s.targetHealthy, target) >= s.replicas || s.state === 'succeeded');
      assert.ok(targetPercent >= 0 && targetPercent <= 100);
      assert.ok(target <= Math.max(s.replicas, s.targetExisting) && previous <= s.replicas);
    }),
  );
});
