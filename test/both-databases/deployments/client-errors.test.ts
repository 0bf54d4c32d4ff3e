// 4xx that only the canary gives: shown always, judged where the environment has a limit for them.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { latencyBoundsMs } from '../../../src/traffic/latency.ts';
import { bucketOf } from '../../../src/traffic/measurements.ts';
import { storeMeasurements } from '../../../src/traffic/traffic-queries.ts';
import { sharedApp } from '../../helpers/shared-app.ts';
import { Shop } from '../../helpers/shop.ts';
import { image } from './deployments-fixture.ts';

const t = sharedApp();

test('they decide nothing until `max_client_error_rate` is set, and then undo the canary', async () => {
  const shop = await Shop.open(t.url, { canary: { bake_s: 600 } });
  await shop.released(image(1));
  const { id } = await shop.deploy(image(2), { strategy: 'canary', canary_percent: 50 });
  await shop.reaches(id, 'canary');
  const measure = (revision: number, requests: number, clientErrors: number) => {
    const latency = latencyBoundsMs.map(() => 0).concat(requests);
    const of = { project: shop.project, environment: 'production', at: bucketOf(Date.now()) };
    const measured = { ...of, revision, requests, errors: 0, clientErrors, latency };
    return storeMeasurements(t.app.store.db, 'another router', [measured]);
  };
  await measure(1, 400, 4);
  await measure(2, 200, 150);
  const { state, canary } = await shop.deployment(id);
  assert.deepEqual([state, canary!.stable.client_error_rate, canary!.canary.client_error_rate], ['canary', 0.01, 0.75]);
  assert.equal(canary!.analysis.verdict, 'good');
  assert.match(canary!.analysis.reason, /More of its answers are 4xx: 150 of 200/);
  const { status } = await shop.api('PATCH', '/environments/production', { canary: { max_client_error_rate: 0.1 } });
  assert.equal(status, 200);
  const { failure } = await shop.reaches(id, 'failed');
  assert.equal(failure!.code, 'analysis_failed');
  assert.match(failure!.message, /150 of 200 requests were answered with 4xx/);
});
