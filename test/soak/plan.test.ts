import assert from 'node:assert/strict';
import { test } from 'node:test';
import { faultKinds, planFaults } from './plan.ts';

test('the same seed gives the same plan, another one another', () => {
  assert.deepEqual(planFaults(7, 5), planFaults(7, 5));
  assert.notDeepEqual(planFaults(7, 5), planFaults(8, 5));
});

test('half an hour has every kind of fault, at least 200 kills, and stops that outlast a lease', () => {
  for (const seed of [1, 2, 3, 4, 5]) {
    const plan = planFaults(seed, 30);
    assert.deepEqual([...new Set(plan.map(({ kind }) => kind))].sort(), [...faultKinds].sort());
    assert.ok(plan.filter(({ kind }) => kind.startsWith('kill')).length >= 200);
    assert.ok(plan.some(({ kind, forMs }) => kind === 'stop control' && forMs > 20_000));
    assert.ok(
      plan.every(({ atMs, forMs }, i) => atMs >= (plan[i - 1]?.atMs ?? 0) && atMs < 1_800_000 && forMs < 60_000),
    );
  }
});

test('a run of a minute restarts the engine and the database too', () => {
  const kinds = planFaults(1, 1).map(({ kind }) => kind);
  for (const kind of ['restart docker', 'kill docker', 'restart postgres', 'kill postgres'] as const) {
    assert.ok(kinds.includes(kind), kind);
  }
});
