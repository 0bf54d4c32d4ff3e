import assert from 'node:assert/strict';
import { test } from 'node:test';
import { compareRecords } from './compare-records.ts';

test('fields that differ, with their values before and after', () => {
  const before = { name: 'a', canary: { bake_s: 60, steps: [] }, locked: null, updated_at: '1', variables: ['A'] };
  const after = { name: 'a', canary: { bake_s: 90, steps: [5] }, locked: { reason: 'x' }, updated_at: '2' };
  assert.deepEqual(compareRecords(before, after), [
    { field: 'canary.bake_s', from: '60', to: '90' },
    { field: 'canary.steps', from: '[]', to: '[5]' },
    { field: 'variables', from: '["A"]', to: null },
    { field: 'locked.reason', from: null, to: '"x"' },
  ]);
  assert.deepEqual(compareRecords(before, before), []);
});
