// A canary that goes on after a pause is judged by what it does from then on.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { latencyBoundsMs } from '../../../src/traffic/latency.ts';
import { bucketMs, bucketOf } from '../../../src/traffic/measurements.ts';
import { storeMeasurements } from '../../../src/traffic/traffic-queries.ts';
import { sharedApp } from '../../helpers/shared-app.ts';
import { Shop } from '../../helpers/shop.ts';
import { until } from '../../helpers/wait.ts';
import { image } from './deployments-fixture.ts';

let frozenAt: number | null = null;
const clock = { now: () => frozenAt ?? Date.now(), monotonic: () => performance.now() };
const t = sharedApp({ tokenLimit: 1_000_000, clock });

test('resume in the ten seconds in which it failed: the errors of before do not count again', async () => {
  const shop = await Shop.open(t.url, { auto_rollback: false, canary: { bake_s: 600, min_requests: 20 } });
  // Alerts look at the same errors, and longer.
  for (const { id } of (await shop.api('GET', '/alert-rules')).body.data)
    await shop.api('DELETE', `/alert-rules/${id}`);
  await shop.released(image(1));
  const { id } = await shop.deploy(image(2), { strategy: 'canary', canary_percent: 50 });
  await shop.reaches(id, 'canary');
  const canary = async () => (await shop.deployment(id)).canary!;
  // All of it happens in one bucket, also by the clock of PostgreSQL, which goes on.
  await until('the beginning of a bucket', () => Date.now() - bucketOf(Date.now()) < bucketMs / 4);
  const at = bucketOf(Date.now());
  frozenAt = at + bucketMs - 1;
  const measure = (requests: number, errors: number) => {
    const latency = latencyBoundsMs.map(() => 0).concat(requests);
    const measured = { project: shop.project, environment: 'production', revision: 2, at, requests, errors, latency };
    return storeMeasurements(t.app.store.db, 'another router', [measured]);
  };
  await measure(50, 50);
  await until('the pause', async () => (await canary()).phase === 'paused');
  assert.equal((await shop.api('POST', `/deployments/${id}/resume`)).status, 200);
  const resumed = await canary();
  assert.deepEqual([resumed.phase, resumed.canary.requests, resumed.canary.p95_ms], ['baking', 0, null]);
  await measure(90, 51);
  const later = await canary();
  assert.deepEqual([later.phase, later.canary.requests, later.canary.error_rate], ['baking', 40, 0.025]);
  frozenAt = null;
  await shop.api('POST', `/deployments/${id}/abort`);
  await shop.reaches(id, 'canceled');
});
