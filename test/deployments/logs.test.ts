// Logs of many instances with long lines: the response stays small, and few are read at once.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sharedApp } from '../helpers/shared-app.ts';
import { until } from '../helpers/wait.ts';

const replicas = 8;
const maxBytes = 1024 * 1024;
let logs = '';

// Instances in a process of their own: to read their logs takes a while.
const app = sharedApp({ standinInProcess: false }, async ({ call, newProject }) => {
  const id = await newProject();
  const environment = `/v1/projects/${id}/environments/production`;
  const settings = { replicas, variables: { STANDIN_LOG_LINES: '1000' } };
  assert.equal((await call('PATCH', environment, { body: settings })).status, 200);
  const body = { environment: 'production', image: 'registry.example/shop:1' };
  const deployment = (await call('POST', `/v1/projects/${id}/deployments`, { body })).body.id;
  const path = `/v1/projects/${id}/deployments/${deployment}`;
  await until('it is live', async () => (await call('GET', path)).body.state === 'succeeded');
  logs = `${path}/logs`;
});

test('the latest lines that fit are returned, and that there are more', async () => {
  const { status, body } = await app.call('GET', `${logs}?tail=1000`);
  assert.equal(status, 200);
  assert.equal(body.truncated, true);
  const bytes = body.data.reduce((sum: number, { text }: { text: string }) => sum + text.length, 0);
  assert.ok(bytes <= maxBytes && bytes > maxBytes - 20_000, `${bytes} bytes of ${replicas} × 16 MB`);
  const times = body.data.map(({ at }: { at: string }) => at);
  assert.deepEqual(times, times.toSorted());
});

test('a few lines are not truncated', async () => {
  const { body } = await app.call('GET', `${logs}?tail=10`);
  assert.equal(body.data.length, 10);
  assert.equal(body.truncated, false);
});

test('of many requests at once some are answered, the others get 503 with Retry-After', async () => {
  const answers = await Promise.all(Array.from({ length: 12 }, () => app.call('GET', `${logs}?tail=1000`)));
  const refused = answers.filter(({ status }) => status === 503);
  assert.ok(refused.length > 0 && refused.length < answers.length, `${refused.length} refused`);
  for (const { body, headers } of refused) {
    assert.equal(body.error.code, 'busy');
    assert.match(headers.get('retry-after')!, /^\d+$/);
  }
  assert.ok(answers.every(({ status }) => status === 200 || status === 503));
  assert.equal((await app.call('GET', `${logs}?tail=10`)).status, 200);
});
