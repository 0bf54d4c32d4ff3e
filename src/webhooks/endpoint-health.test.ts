import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  disabledAfterMs,
  type Health,
  hasFailedTooLong,
  healthAfter,
  opensAfter,
  roomFor,
  wantFor,
  wantsFor,
  well,
} from './endpoint-health.ts';

const fail = (health: Health, nowMs: number, failed = 1) => healthAfter(health, { succeeded: 0, failed }, nowMs, 0.5);
const idle = { inFlight: 0, oldestAt: null };

test('the breaker opens after ten failures in a row, and one success closes it', () => {
  let health = well;
  for (let n = 1; n < opensAfter; n++) {
    health = fail(health, n);
    assert.deepEqual(health, { failures: n, failingSince: 1, probeAt: null });
  }
  health = fail(health, 1000);
  assert.deepEqual(health, { failures: 10, failingSince: 1, probeAt: 6000 });
  assert.equal(roomFor(health, false, idle, 5999), 0);
  assert.equal(roomFor(health, false, idle, 6000), 1);
  assert.equal(roomFor(health, false, { inFlight: 1, oldestAt: 0 }, 6000), 0);
  assert.deepEqual(healthAfter(health, { succeeded: 1, failed: 3 }, 7000, 0.5), well);
});

test('probes that fail come ever later, at most ten minutes; a crowd that fails together counts once', () => {
  let health = fail(well, 0, 32);
  const waits = [];
  let nowMs = 0;
  for (let n = 0; n < 9; n++) {
    waits.push((health.probeAt! - nowMs) / 1000);
    assert.equal(fail(health, health.probeAt! - 1, 5), health);
    nowMs = health.probeAt!;
    health = fail(health, nowMs);
  }
  assert.deepEqual(waits, [5, 10, 20, 40, 80, 160, 320, 600, 600]);
});

test('five days without one success are too long', () => {
  const health = fail(well, 1000);
  assert.equal(hasFailedTooLong(health, 1000 + disabledAfterMs - 1), false);
  assert.equal(hasFailedTooLong(health, 1000 + disabledAfterMs), true);
  assert.equal(hasFailedTooLong(well, disabledAfterMs), false);
});

test('room: 32 at once, 8 for one that hangs, 2 for one that fails, 1 where the order is strict', () => {
  assert.equal(roomFor(well, false, idle, 0), 32);
  assert.equal(roomFor(well, false, { inFlight: 30, oldestAt: 0 }, 100), 2);
  assert.equal(roomFor(well, false, { inFlight: 30, oldestAt: 0 }, 3000), 0);
  assert.equal(roomFor(well, false, { inFlight: 3, oldestAt: 0 }, 3000), 5);
  assert.equal(roomFor(fail(well, 0), false, { inFlight: 1, oldestAt: 0 }, 0), 1);
  assert.equal(roomFor(well, true, idle, 0), 1);
  assert.equal(roomFor(well, true, { inFlight: 1, oldestAt: 0 }, 0), 0);
});

test('taken ahead: 32 more for one that answers fast, none for one that is slow, fails or is in strict order', () => {
  const load = (inFlight: number, waiting: number, oldestAt: number | null = 0) => ({ inFlight, waiting, oldestAt });
  assert.equal(wantFor(well, false, undefined, 0), 64);
  assert.equal(wantFor(well, false, load(32, 20), 100), 12);
  assert.equal(wantFor(well, false, load(32, 32), 100), 0);
  assert.equal(wantFor(well, false, load(20, 0), 200), 12);
  assert.equal(wantFor(well, false, load(32, 20), 200), 0);
  assert.equal(wantFor(well, true, undefined, 0), 1);
  assert.equal(wantFor(fail(well, 0), false, undefined, 0), 2);
  assert.deepEqual(wantsFor(undefined, 0), { well: 64, failing: 2, probing: 1 });
  assert.deepEqual(wantsFor(load(1, 0), 0), { well: 63, failing: 1, probing: 0 });
});
