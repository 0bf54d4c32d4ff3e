import assert from 'node:assert/strict';
import { test } from 'node:test';
import { latencyBoundsMs } from '../../../src/traffic/latency.ts';
import { bucketMs } from '../../../src/traffic/measurements.ts';
import { storeMeasurements } from '../../../src/traffic/traffic-queries.ts';
import { sharedApp } from '../../helpers/shared-app.ts';

const nowMs = Date.parse('2026-11-15T08:30:07.000Z');
const clock = { now: () => nowMs };
const t = sharedApp({ tokenLimit: 1_000_000, clock, env: { SLUICE_ROLES: 'api' } });

const { newProject } = t;

const latency = (index: number, count: number) =>
  Array.from({ length: latencyBoundsMs.length + 1 }, (_, i) => (i === index ? count : 0));

test('series of every revision, over all routers, with points for every step', async () => {
  const project = await newProject();
  const to = Math.floor(nowMs / bucketMs) * bucketMs;
  const of = { project, environment: 'production' };
  const { db } = t.app.store;
  await storeMeasurements(db, 'one', [
    { ...of, revision: 1, at: to - 60_000, requests: 100, errors: 0, latency: latency(5, 100) },
    { ...of, revision: 1, at: to - 50_000, requests: 100, errors: 10, latency: latency(5, 100) },
    { ...of, revision: 2, at: to - 10_000, requests: 0, errors: 1, latency: latency(0, 0) },
    { ...of, revision: 1, at: to - 70_000, requests: 7, errors: 7, latency: latency(0, 7) },
  ]);
  await storeMeasurements(db, 'two', [
    { ...of, revision: 1, at: to - 50_000, requests: 200, errors: 20, latency: latency(5, 200) },
  ]);
  const span = `from=${new Date(to - 60_000).toISOString()}&to=${new Date(to).toISOString()}`;
  const get = (query: string) => t.call('GET', `/v1/projects/${project}/metrics?${query}`);
  const { status, body } = await get(`${span}&step_s=20`);
  assert.equal(status, 200);
  const at = (ms: number) => new Date(to - ms).toISOString();
  const none = { requests: 0, request_rate: 0, error_rate: null, p50_ms: null, p95_ms: null };
  assert.deepEqual(body, {
    environment: 'production',
    from: at(60_000),
    to: at(0),
    step_s: 20,
    series: [
      { revision: 'r2', points: [60_000, 40_000, 20_000].map((ms) => ({ at: at(ms), ...none })) },
      {
        revision: 'r1',
        points: [
          { at: at(60_000), requests: 400, request_rate: 20, error_rate: 0.075, p50_ms: 8.5, p95_ms: 9.85 },
          { at: at(40_000), ...none },
          { at: at(20_000), ...none },
        ],
      },
    ],
  });
  const one = (await get(`${span}&revision=r1`)).body;
  assert.deepEqual([one.step_s, one.series.length, one.series[0].points.length], [10, 1, 6]);
  assert.deepEqual((await get(`${span}&revision=r9`)).body.series, []);
  const usual = (await get('')).body;
  assert.deepEqual([usual.step_s, usual.series[0].points.length], [30, 120]);
  const week = (await get(`from=${new Date(to - 7 * 86_400_000).toISOString()}`)).body;
  assert.equal(
    week.series[1].points.reduce((sum: number, point: { requests: number }) => sum + point.requests, 0),
    407,
  );
});

test('400 and 422: nothing between from and to, a step that is none, too many, no such environment', async () => {
  const project = await newProject();
  const get = async (query: string) => {
    const { status, body } = await t.call('GET', `/v1/projects/${project}/metrics?${query}`);
    return [status, body.error?.code, body.error?.details?.[0].path];
  };
  const at = (ms: number) => new Date(nowMs - ms).toISOString();
  assert.deepEqual(await get(`from=${at(0)}&to=${at(0)}`), [400, 'invalid_request', 'query.from']);
  assert.deepEqual(await get('step_s=15'), [400, 'invalid_request', 'query.step_s']);
  assert.deepEqual(await get(`from=${at(86_400_000)}&step_s=10`), [400, 'invalid_request', 'query.step_s']);
  assert.deepEqual(await get('from=yesterday'), [400, 'invalid_request', 'query.from']);
  assert.deepEqual(await get('environment=nowhere'), [422, 'environment_unknown', 'query.environment']);
  assert.deepEqual(await get(`from=${at(10_000_000)}&step_s=10`), [200, undefined, undefined]);
});
