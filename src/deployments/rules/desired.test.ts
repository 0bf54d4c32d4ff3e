import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { deploymentStates, strategies } from '../../contract/deployments.ts';
import { desiredOf, type Situation } from './desired.ts';

const base: Situation = {
  state: 'promoting',
  strategy: 'rolling',
  hasPrevious: true,
  percent: 10,
  replicas: 4,
  freshHealthy: 0,
  freshExisting: 0,
  previousHealthy: 4,
};

test('rolling: one more each time, as many old ones go as new ones have come', () => {
  const steps = [0, 1, 2, 3, 4].map((freshHealthy) => desiredOf({ ...base, freshHealthy }));
  assert.deepEqual(steps, [
    { fresh: 1, previous: 4, freshPercent: 0 },
    { fresh: 2, previous: 3, freshPercent: 25 },
    { fresh: 3, previous: 2, freshPercent: 50 },
    { fresh: 4, previous: 1, freshPercent: 75 },
    { fresh: 4, previous: 0, freshPercent: 100 },
  ]);
});

test('blue_green: all new ones first, then one switch', () => {
  const blue = { ...base, strategy: 'blue_green' } as const;
  assert.deepEqual(desiredOf({ ...blue, state: 'starting' }), { fresh: 4, previous: 4, freshPercent: 0 });
  assert.deepEqual(desiredOf({ ...blue, freshHealthy: 3 }), { fresh: 4, previous: 4, freshPercent: 0 });
  assert.deepEqual(desiredOf({ ...blue, freshHealthy: 4 }), { fresh: 4, previous: 0, freshPercent: 100 });
});

test('more replicas, asked for when the old ones have left: they get no share again', () => {
  for (const strategy of strategies) {
    const left = { ...base, strategy, freshHealthy: 3, previousHealthy: 0 };
    assert.equal(desiredOf(left).freshPercent, 100);
    assert.ok(desiredOf({ ...left, freshHealthy: 0 }).freshPercent < 100, 'none of both serves');
  }
});

test('canary: as many instances as its share needs', () => {
  const canary = { ...base, strategy: 'canary', state: 'canary' } as const;
  assert.deepEqual(desiredOf(canary), { fresh: 1, previous: 4, freshPercent: 10 });
  assert.deepEqual(desiredOf({ ...canary, percent: 60 }), { fresh: 3, previous: 4, freshPercent: 60 });
});

test('aborting: the old ones come back before the new ones go', () => {
  const aborting = { ...base, state: 'aborting', freshHealthy: 3, freshExisting: 3 } as const;
  assert.deepEqual(desiredOf({ ...aborting, previousHealthy: 1 }), { fresh: 3, previous: 4, freshPercent: 0 });
  assert.deepEqual(desiredOf({ ...aborting, previousHealthy: 4 }), { fresh: 0, previous: 4, freshPercent: 0 });
  assert.deepEqual(desiredOf({ ...aborting, previousHealthy: 0 }), { fresh: 3, previous: 4, freshPercent: 100 });
});

test('while both revisions are at work, what is wanted is never fewer healthy instances than before', () => {
  const situation = fc.record({
    state: fc.constantFrom(...deploymentStates),
    strategy: fc.constantFrom(...strategies),
    hasPrevious: fc.constant(true),
    percent: fc.integer({ min: 1, max: 99 }),
    replicas: fc.integer({ min: 1, max: 20 }),
    freshHealthy: fc.nat(20),
    freshExisting: fc.nat(20),
    previousHealthy: fc.nat(20),
  });
  fc.assert(
    fc.property(situation, (s) => {
      const { fresh, previous, freshPercent } = desiredOf(s);
      assert.ok(previous + Math.min(s.freshHealthy, fresh) >= s.replicas || s.state === 'succeeded');
      assert.ok(freshPercent >= 0 && freshPercent <= 100);
      assert.ok(fresh <= Math.max(s.replicas, s.freshExisting) && previous <= s.replicas);
    }),
  );
});
