import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sharedApp } from '../../helpers/shared-app.ts';

let base: string;
const t = sharedApp({}, async () => {
  base = `/v1/projects/${await t.newProject()}/environments`;
});

test('a new project has the environment production with the documented defaults', async () => {
  const { status, body } = await t.call('GET', `${base}/production`);
  assert.equal(status, 200);
  const { url, created_at, updated_at, ...rest } = body;
  assert.match(url, /^http:\/\/shop-production\.localhost:\d+$/);
  assert.equal(created_at, updated_at);
  assert.deepEqual(rest, {
    name: 'production',
    region: 'local',
    replicas: 1,
    port: 8080,
    variables: [],
    health_check: {
      path: null,
      interval_s: 2,
      timeout_s: 2,
      healthy_after: 2,
      unhealthy_after: 3,
      start_timeout_s: 60,
    },
    resources: { memory_mb: 512, cpus: 1 },
    canary: {
      advance: 'auto',
      bake_s: 60,
      steps: [],
      min_requests: 20,
      max_error_rate: 0.05,
      max_client_error_rate: null,
      max_p95_ms: null,
      approval_timeout_s: 86_400,
      warmup_s: 60,
      on_inconclusive: 'promote',
    },
    auto_rollback: true,
    retention: 10,
    drain_s: 10,
    locked: null,
    health: { state: 'idle', since: created_at, reason: null },
    active_revision: null,
    traffic: [],
    in_progress_deployment: null,
    pending_changes: [],
  });
});

test('nested objects merge, null clears, values of variables never come back', async () => {
  const create = await t.call('POST', base, {
    body: { name: 'staging', health_check: { path: '/up' }, variables: { A: 'secret-a', B: 'secret-b' } },
  });
  assert.equal(create.status, 201);
  assert.deepEqual(create.body.variables, ['A', 'B']);
  const { body } = await t.call('PATCH', `${base}/staging`, {
    body: {
      health_check: { interval_s: 5 },
      canary: { steps: [25, 50] },
      variables: { B: null, C: 'secret-c' },
      locked: { reason: 'freeze' },
    },
  });
  assert.equal(body.health_check.path, '/up');
  assert.equal(body.health_check.interval_s, 5);
  assert.deepEqual(body.canary.steps, [25, 50]);
  assert.equal(body.canary.bake_s, 60);
  assert.deepEqual(body.variables, ['A', 'C']);
  assert.equal(body.locked.reason, 'freeze');
  const cleared = await t.call('PATCH', `${base}/staging`, { body: { health_check: { path: null }, locked: null } });
  assert.equal(cleared.body.health_check.path, null);
  assert.equal(cleared.body.health_check.interval_s, 5);
  assert.equal(cleared.body.locked, null);
  assert.ok(!JSON.stringify([create.body, body, cleared.body]).includes('secret-'));
});

test('409 environment_exists, 422 region_unknown, 400 for invalid settings, 404 for an unknown environment', async () => {
  const refused = async (method: string, path: string, body?: object) => {
    const result = await t.call(method, path, { body });
    return [result.status, result.body.error.code];
  };
  assert.deepEqual(await refused('POST', base, { name: 'production' }), [409, 'environment_exists']);
  assert.deepEqual(await refused('POST', base, { name: 'x', region: 'mars' }), [422, 'region_unknown']);
  assert.deepEqual(await refused('POST', base, { name: 'Big' }), [400, 'invalid_request']);
  assert.deepEqual(await refused('PATCH', `${base}/production`, { replicas: 21 }), [400, 'invalid_request']);
  assert.deepEqual(await refused('PATCH', `${base}/production`, { canary: { steps: [50, 25] } }), [
    400,
    'invalid_request',
  ]);
  assert.deepEqual(await refused('PATCH', `${base}/production`, { variables: { '1X': 'a' } }), [
    400,
    'invalid_request',
  ]);
  assert.deepEqual(await refused('PATCH', `${base}/production`, { region: 'local' }), [400, 'invalid_request']);
  assert.deepEqual(await refused('GET', `${base}/nothing`), [404, 'environment_not_found']);
});

test('deleted environments are gone, and leave the project', async () => {
  await t.call('POST', base, { body: { name: 'short' } });
  assert.equal((await t.call('DELETE', `${base}/short`)).status, 204);
  assert.equal((await t.call('GET', `${base}/short`)).status, 404);
  const project = (await t.call('GET', base.replace('/environments', ''))).body;
  assert.ok(!project.environments.includes('short'));
});

test('a variable’s value is encrypted in the database', async () => {
  await t.call('PATCH', `${base}/production`, { body: { variables: { PASSWORD: 'hunter2-hunter2' } } });
  const { db } = t.app.store;
  const sets = await db.selectFrom('variable_set').selectAll().execute();
  assert.ok(sets.length > 0 && sets.every(({ sealed }) => sealed.startsWith('v1.')));
  const rows = await db.selectFrom('environment').selectAll().execute();
  assert.ok(!JSON.stringify([rows, sets]).includes('hunter2'));
});

test('the bytes of all variables of an environment are bounded, and the error says so', async () => {
  const path = `${base}/production`;
  const large = (count: number) =>
    Object.fromEntries(Array.from({ length: count }, (_, n) => [`LARGE_${n}`, 'x'.repeat(60_000)]));
  assert.equal((await t.call('PATCH', path, { body: { variables: large(4) } })).status, 200);
  const { status, body } = await t.call('PATCH', path, { body: { variables: large(5) } });
  assert.deepEqual([status, body.error.code, body.error.details[0].path], [422, 'quota_exceeded', 'variables_bytes']);
  assert.match(body.error.message, /at most 262144 bytes/);
  const none = Object.fromEntries(Object.keys(large(4)).map((name) => [name, null]));
  assert.equal((await t.call('PATCH', path, { body: { variables: none } })).status, 200);
});
