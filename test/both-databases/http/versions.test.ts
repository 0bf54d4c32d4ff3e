import assert from 'node:assert/strict';
import { test } from 'node:test';
import { routes } from '../../../src/contract/api.ts';
import { Names } from '../../helpers/names.ts';
import { sharedApp } from '../../helpers/shared-app.ts';

const t = sharedApp();

const create = async (path: string, body: object) => (await t.call('POST', path, { body })).body;

/** A fresh resource for each route that heeds If-Match. */
const resources: Record<string, () => Promise<string>> = {
  '/projects/{id}': async () => `/v1/projects/${(await create('/v1/projects', { name: 'x' })).id}`,
  '/projects/{id}/environments/{name}': async () =>
    `/v1/projects/${(await create('/v1/projects', { name: 'x' })).id}/environments/production`,
  '/projects/{id}/alert-rules/{rul}': async () => {
    const { id } = await create('/v1/projects', { name: 'x' });
    const { data } = (await t.call('GET', `/v1/projects/${id}/alert-rules`)).body;
    return `/v1/projects/${id}/alert-rules/${data[0].id}`;
  },
  '/projects/{id}/domains/{dom}': async () => {
    const { id } = await create('/v1/projects', { name: 'x' });
    // Its version rises until its certificate is there.
    const domain = await new Names(t.url, id).active('versions.example');
    return `/v1/projects/${id}/domains/${domain.id}`;
  },
  '/webhooks/{whk}': async () =>
    `/v1/webhooks/${(await create('/v1/webhooks', { url: 'http://127.0.0.1:1/', events: ['*'] })).id}`,
  '/registries/{reg}': async () => {
    const login = { host: 'registry.example', username: 'x', password: 'x' };
    return `/v1/registries/${(await create('/v1/registries', login)).id}`;
  },
  '/tokens/{tok}': async () => `/v1/tokens/${(await create('/v1/tokens', { name: 'x', scopes: ['*'] })).id}`,
};

/** Where a change of nothing is refused. */
const changes: Record<string, object> = { '/projects/{id}/alert-rules/{rul}': { for_s: 1 } };

for (const { method, path, versioned } of routes) {
  if (!versioned || (method !== 'PATCH' && method !== 'DELETE')) continue;
  test(`412 version_conflict: ${method} ${path}`, async () => {
    const at = await resources[path]!();
    const body = method === 'PATCH' ? (changes[path] ?? {}) : undefined;
    const etag = (await t.call('GET', at)).headers.get('etag')!;
    assert.match(etag, /^"v\d+\.[\w-]{16}"$/);
    for (const malformed of ['v1', '"v1', etag.slice(1), '"v1" "v2"']) {
      const refused = await t.call(method, at, { body, headers: { 'if-match': malformed } });
      assert.deepEqual([refused.status, refused.body.error?.code], [400, 'invalid_request'], malformed);
    }
    const stale = await t.call(method, at, { body, headers: { 'if-match': '"v999"' } });
    assert.equal(stale.status, 412);
    assert.equal(stale.body.error.code, 'version_conflict');
    assert.equal((await t.call('GET', at)).headers.get('etag'), etag);
    assert.equal((await t.call('GET', at, { headers: { 'if-none-match': etag } })).status, 304);
    const fresh = await t.call(method, at, { body, headers: { 'if-match': etag } });
    assert.ok(fresh.status < 300);
    if (method === 'PATCH') {
      assert.notEqual(fresh.headers.get('etag'), etag);
      assert.equal((await t.call(method, at, { body, headers: { 'if-match': etag } })).status, 412);
      assert.equal((await t.call('GET', at, { headers: { 'if-none-match': etag } })).status, 200);
    }
  });
}

test('304 for a client that has it: no body, the same headers; 200 once anything it shows has changed', async () => {
  const at = await resources['/projects/{id}']!();
  const first = await t.call('GET', at);
  const etag = first.headers.get('etag')!;
  for (const known of [etag, `W/${etag}`, `"x", ${etag}`, '*']) {
    const again = await t.call('GET', at, { headers: { 'if-none-match': known } });
    assert.deepEqual([again.status, again.body], [304, ''], known);
    assert.equal(again.headers.get('etag'), etag);
    assert.match(again.headers.get('x-request-id')!, /^req_/);
    assert.ok(again.headers.has('x-ratelimit-remaining'));
  }
  assert.equal((await t.call('GET', at, { headers: { 'if-none-match': '"v1"' } })).status, 200);
  await t.call('POST', `${at}/environments`, { body: { name: 'staging' } });
  const changed = await t.call('GET', at, { headers: { 'if-none-match': etag } });
  assert.equal(changed.status, 200, 'its environments are another resource, and it shows them');
  assert.equal(
    (await t.call('GET', '/v1/projects', { headers: { 'if-none-match': '*' } })).status,
    200,
    'a list has no tag',
  );
});

test('of 20 simultaneous changes with one If-Match exactly one wins', async () => {
  const at = await resources['/projects/{id}']!();
  const headers = { 'if-match': (await t.call('GET', at)).headers.get('etag')! };
  const results = await Promise.all(
    Array.from({ length: 20 }, (_, i) => t.call('PATCH', at, { body: { name: `n${i}` }, headers })),
  );
  assert.deepEqual(results.map((r) => r.status).sort(), [200, ...Array(19).fill(412)]);
});

test('20 simultaneous changes without If-Match all succeed, and none is lost', async () => {
  const at = await resources['/projects/{id}/environments/{name}']!();
  const results = await Promise.all(
    Array.from({ length: 20 }, (_, i) => t.call('PATCH', at, { body: { variables: { [`V${i}`]: 'x' } } })),
  );
  assert.deepEqual(new Set(results.map((r) => r.status)), new Set([200]));
  assert.equal((await t.call('GET', at)).body.variables.length, 20);
});
