import assert from 'node:assert/strict';
import { test } from 'node:test';
import { nextPorts } from './ports.ts';

const range = { first: 20_000, last: 20_004 };
const none = new Set<number>();

test('ports follow the one that was given last, and go round', () => {
  assert.deepEqual(nextPorts(range, 20_000, none, 3), [20_001, 20_002, 20_003]);
  assert.deepEqual(nextPorts(range, 20_003, none, 3), [20_004, 20_000, 20_001]);
  assert.deepEqual(nextPorts(range, 20_004, none, 1), [20_000]);
});

test('the port that was given last comes last', () => {
  assert.deepEqual(nextPorts(range, 20_002, none, 9), [20_003, 20_004, 20_000, 20_001, 20_002]);
});

test('ports that are taken are skipped, and none is given twice', () => {
  assert.deepEqual(nextPorts(range, 20_000, new Set([20_001, 20_003]), 9), [20_002, 20_004, 20_000]);
  assert.deepEqual(nextPorts(range, 20_000, new Set([20_000, 20_001, 20_002, 20_003, 20_004]), 1), []);
});

test('a port of an earlier range does not count', () => {
  assert.deepEqual(nextPorts(range, 30_000, none, 2), [20_000, 20_001]);
  assert.deepEqual(nextPorts(range, 19_999, none, 2), [20_000, 20_001]);
});
