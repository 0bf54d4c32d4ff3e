import assert from 'node:assert/strict';
import { test } from 'node:test';
import { healthOf, type Serving } from './environment-health.ts';

const nowMs = 10_000_000;
type Instance = Serving['instances'][number];
const instance = (more: Partial<Instance> = {}): Instance => ({
  ...{
    state: 'healthy',
    restarts: 0,
    started_at: nowMs - 1000,
    check_ok: 1,
    check_message: 'connected',
    is_fallback: 0,
  },
  ...more,
});
const failing = instance({ state: 'unhealthy', check_ok: 0, check_message: '/health answered 500' });
const ended = (agoMs: number) => ({ ended_at: nowMs - agoMs, message: 'An instance ended with exit code 3.' });

const of = (instances: Instance[], more: Partial<Serving> = {}) =>
  healthOf({ active: 'r3', replicas: 2, instances, lastEnd: null, ...more }, nowMs);

test('nothing deployed is idle', () => {
  assert.deepEqual(of([], { active: null }), { state: 'idle', reason: null });
});

test('as many healthy instances as there should be are healthy, more of them too', () => {
  for (const count of [2, 3]) {
    assert.deepEqual(of(Array.from({ length: count }, () => instance())), { state: 'healthy', reason: null });
  }
});

test('none is down, fewer are degraded, each with what is known of the cause', () => {
  assert.deepEqual(of([failing, failing]), {
    state: 'down',
    reason: 'No instance of r3 is healthy. An instance does not pass its health check: /health answered 500.',
  });
  assert.deepEqual(of([instance(), failing]), {
    state: 'degraded',
    reason: '1 of 2 instances is healthy. An instance does not pass its health check: /health answered 500.',
  });
  assert.equal(
    of([], { lastEnd: ended(1000) }).reason,
    'No instance of r3 is healthy. An instance ended with exit code 3.',
  );
  assert.match(of([instance({ state: 'starting' })], { lastEnd: ended(600_000) }).reason!, /Others are starting\.$/);
  assert.match(of([]).reason!, /Others are missing\.$/);
});

test('an instance that is restarted again and again is degraded, until it has run for a while', () => {
  const restarted = (ranMs: number) => instance({ restarts: 4, started_at: nowMs - ranMs });
  assert.deepEqual(of([instance(), restarted(1000)], { lastEnd: ended(2000) }), {
    state: 'degraded',
    reason: 'An instance was restarted 4 times in a row. An instance ended with exit code 3.',
  });
  assert.equal(of([instance(), restarted(400_000)]).state, 'healthy');
  assert.equal(of([instance(), instance({ restarts: 2 })]).state, 'healthy');
});
