import assert from 'node:assert/strict';
import { test } from 'node:test';
import { faultKinds, planFaults } from './plan.ts';
import type { DatabaseKind } from './records.ts';

test('the same seed gives the same plan, another one another', () => {
  assert.deepEqual(planFaults(7, 5, 'postgres'), planFaults(7, 5, 'postgres'));
  assert.notDeepEqual(planFaults(7, 5, 'postgres'), planFaults(8, 5, 'postgres'));
});

test('half an hour has every kind of fault, at least 200 kills, and stops that outlast a lease', () => {
  for (const seed of [1, 2, 3, 4, 5]) {
    const plan = planFaults(seed, 30, 'postgres');
    assert.deepEqual([...new Set(plan.map(({ kind }) => kind))].sort(), [...faultKinds].sort());
    assert.ok(plan.filter(({ kind }) => kind.startsWith('kill')).length >= 200);
    assert.ok(plan.some(({ kind, forMs }) => kind === 'stop control' && forMs > 20_000));
    assert.ok(
      plan.every(({ atMs, forMs }, i) => atMs >= (plan[i - 1]?.atMs ?? 0) && atMs < 1_800_000 && forMs < 60_000),
    );
  }
});

test('a run of a minute restarts the engine too, and the database where that is a server', () => {
  const kindsOn = (database: DatabaseKind) => planFaults(1, 1, database).map(({ kind }) => kind);
  for (const kind of ['restart docker', 'kill docker', 'restart postgres', 'kill postgres'] as const) {
    assert.ok(kindsOn('postgres').includes(kind), kind);
    assert.equal(kindsOn('sqlite').includes(kind), kind.endsWith('docker'), kind);
  }
});
