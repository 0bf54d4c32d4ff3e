import assert from 'node:assert/strict';
import { test } from 'node:test';
import { firstRenewAt, renewAt, retryDelayMs } from './retry.ts';

const minute = 60_000;
const hour = 60 * minute;

test('waits grow from a minute to twelve hours', () => {
  const waits = Array.from({ length: 12 }, (_, index) => retryDelayMs(index + 1, null, 0.5) / minute);
  assert.deepEqual(waits, [1, 2, 5, 15, 30, 60, 120, 240, 480, 720, 720, 720]);
});

test('each is spread by a fifth to both sides', () => {
  assert.equal(retryDelayMs(1, null, 0), 48_000);
  assert.equal(retryDelayMs(1, null, 1), 72_000);
});

test('an authority that asks for more time gets it, up to a week', () => {
  assert.equal(retryDelayMs(1, 3 * hour, 0.5), 3 * hour);
  assert.equal(retryDelayMs(6, 1000, 0.5), hour);
  assert.equal(retryDelayMs(1, 1e12, 0.5), 7 * 24 * hour);
});

test('renewal is due at two thirds of the life', () => {
  assert.equal(renewAt(0, 90 * 24 * hour), 60 * 24 * hour);
  assert.equal(renewAt(30, 60), 50);
});

test('what was just issued is left alone for a while, whatever the clock says', () => {
  const month = 30 * 24 * hour;
  assert.equal(firstRenewAt(0, 3 * month, 0), 2 * month);
  assert.equal(firstRenewAt(0, 3 * month, 4 * month), 4 * month + hour);
  assert.equal(firstRenewAt(0, 60_000, 50_000), 70_000);
});
