// What an account may have of each resource: who has it says so, at its address and in the errors, and another account does
// not notice.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { Account } from '../../../src/contract/account.ts';
import { quotaNames } from '../../../src/contract/quota-resources.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import { createIds } from '../../../src/lib/ids.ts';
import { insertAccount } from '../../../src/tokens/admin-token.ts';
import { createToken } from '../../../src/tokens/create-token.ts';
import { type Result, startApp, type TestApp } from '../../helpers/app.ts';
import { until } from '../../helpers/wait.ts';

const ids = createIds(systemClock);
const quick = { health_check: { interval_s: 1, healthy_after: 1, start_timeout_s: 30 }, drain_s: 0 };

interface Tenant {
  id: string;
  token: string;
  call(method: string, path: string, body?: object): Promise<Result>;
  account(): Promise<Account>;
  newProject(settings?: object): Promise<string>;
  deploy(project: string): Promise<Result>;
  ends(
    project: string,
    deployment: string,
  ): Promise<{ state: string; failure: { code: string; message: string } | null }>;
}

async function openTenant(t: TestApp, name: string): Promise<Tenant> {
  const { db } = t.app.store;
  const id = await insertAccount(db, ids, name, Date.now());
  const parts = { ids, clock: systemClock };
  const { secret: token } = await createToken(db, parts, { accountId: id, name, scopes: ['*'] });
  const call = (method: string, path: string, body?: object) =>
    t.call(method, `/v1${path}`, { token, ...(body && { body }) });
  return {
    ...{ id, token, call },
    account: async () => (await call('GET', '/account')).body,
    async newProject(settings = {}) {
      const project = (await call('POST', '/projects', { name: 'Shop' })).body.id;
      const changed = await call('PATCH', `/projects/${project}/environments/production`, { ...quick, ...settings });
      assert.equal(changed.status, 200, JSON.stringify(changed.body));
      return project;
    },
    deploy: (project) =>
      call('POST', `/projects/${project}/deployments`, { environment: 'production', image: 'registry.example/shop:1' }),
    ends: (project, deployment) =>
      until(
        'its end',
        async () => {
          const { body } = await call('GET', `/projects/${project}/deployments/${deployment}`);
          return body.finished_at === null ? undefined : body;
        },
        90_000,
        200,
      ),
  };
}

const refusedFor = ({ status, body }: Result) => [status, body.error?.code, body.error?.details?.[0]];

describe('quotas of an account', () => {
  const limits = {
    ...{ projects: 4, environments: 6, instances: 5, memory_mb: 1024, webhooks: 2, domains: 2, tokens: 3 },
    ...{ variables_bytes: 3000, requests_per_minute: 500 },
  };
  let t: TestApp;
  let a: Tenant;
  let b: Tenant;
  before(async () => {
    const quotas = Object.entries(limits).map(([name, number]) => `${name}=${number}`);
    t = await startApp({ env: { SLUICE_QUOTAS: quotas.join() } });
    a = await openTenant(t, 'A');
    b = await openTenant(t, 'B');
  });
  after(() => t.stop());

  test('GET /account names the quotas and what is used of each, with any token', async () => {
    const { status, body } = await a.call('GET', '/account');
    assert.equal(status, 200);
    assert.deepEqual([body.id, body.name], [a.id, 'A']);
    assert.deepEqual(Object.keys(body.quotas), quotaNames);
    assert.deepEqual(Object.keys(body.usage), quotaNames);
    for (const [name, number] of Object.entries(limits)) assert.equal(body.quotas[name], number, name);
    assert.equal(body.quotas.log_bytes, 10_000 * 1024 * 1024);
    assert.ok(body.quotas.ports > 0, 'one of several accounts may not have all of them');
    assert.deepEqual([body.usage.projects, body.usage.tokens], [0, 1]);
    assert.ok(body.usage.requests_per_minute >= 1);
    const narrow = (await a.call('POST', '/tokens', { name: 'narrow', scopes: ['events:read'] })).body.token;
    assert.equal((await t.call('GET', '/v1/account', { token: narrow })).status, 200);
    assert.equal((await t.call('GET', '/v1/account', { token: null })).status, 401);
  });

  test('webhooks, tokens, domains, environments, projects: the next one is refused, and the error names the quota', async () => {
    const project = await a.newProject();
    const make: [keyof typeof limits, string, (n: number) => object][] = [
      ['webhooks', '/webhooks', () => ({ url: 'http://127.0.0.1:9/', events: ['*'] })],
      ['tokens', '/tokens', (n) => ({ name: `token ${n}`, scopes: ['*'] })],
      ['domains', `/projects/${project}/domains`, (n) => ({ hostname: `a${n}.example`, environment: 'production' })],
      ['environments', `/projects/${project}/environments`, (n) => ({ name: `more-${n}` })],
    ];
    for (const [resource, path, bodyOf] of make) {
      const used = (await a.account()).usage[resource];
      for (let n = used; n < limits[resource]; n++) assert.equal((await a.call('POST', path, bodyOf(n))).status, 201);
      const refused = await a.call('POST', path, bodyOf(99));
      const detail = { path: resource, message: `at most ${limits[resource]}` };
      assert.deepEqual(refusedFor(refused), [422, 'quota_exceeded', detail]);
      assert.equal((await a.account()).usage[resource], limits[resource]);
    }
    // The first environment of a project counts too.
    const refused = await a.call('POST', '/projects', { name: 'One more' });
    assert.deepEqual(refusedFor(refused), [422, 'quota_exceeded', { path: 'environments', message: 'at most 6' }]);
    assert.equal((await a.call('GET', '/projects')).body.data.length, 1, 'nothing of it is left');
    assert.equal((await b.call('POST', '/projects', { name: 'Theirs' })).status, 201);
    assert.equal((await a.call('DELETE', `/projects/${project}`)).status, 204);
    const { usage } = await a.account();
    assert.deepEqual([usage.projects, usage.environments, usage.domains], [0, 0, 0]);
  });

  test('the address of a deleted project is kept for its account: another one with the same name gets another', async () => {
    const open = async ({ call }: Tenant) => {
      const { status, body } = await call('POST', '/projects', { name: 'Kept', slug: 'kept' });
      assert.equal(status, 201, JSON.stringify(body));
      const { url } = (await call('GET', `/projects/${body.id}/environments/production`)).body;
      assert.equal((await call('DELETE', `/projects/${body.id}`)).status, 204);
      return new URL(url).hostname;
    };
    assert.equal(await open(a), 'kept-production.localhost');
    assert.match(await open(b), /^kept-production-[0-9a-z]{8}\.localhost$/);
    assert.equal(await open(a), 'kept-production.localhost', 'it is still its own');
  });

  test('not even for requests that come at once', async () => {
    const statuses = await Promise.all(
      Array.from(
        { length: 10 },
        async () => (await b.call('POST', '/webhooks', { url: 'http://127.0.0.1:9/', events: ['*'] })).status,
      ),
    );
    assert.deepEqual(statuses.toSorted(), [201, 201, ...Array(8).fill(422)]);
  });

  test('a creation adds to what is stored and does not count; what was deleted is noticed before one is refused', async () => {
    const c = await openTenant(t, 'C');
    const at = `/projects/${await c.newProject()}/environments`;
    const stored = async () => {
      const { db } = t.app.store;
      const rows = db.selectFrom('account_usage').select('used').where('account_id', '=', c.id);
      return (await rows.where('resource', '=', 'environments').executeTakeFirst())?.used;
    };
    const create = async (name: string) => (await c.call('POST', at, { name })).status;
    assert.equal(await stored(), 1);
    for (const name of ['two', 'three']) assert.equal(await create(name), 201);
    assert.equal(await stored(), 3);
    assert.equal((await c.call('DELETE', `${at}/two`)).status, 204);
    assert.equal(await create('four'), 201);
    assert.equal(await stored(), 4, 'counted, it would be 3');
    for (const name of ['five', 'six']) assert.equal(await create(name), 201);
    assert.deepEqual([await stored(), (await c.account()).usage.environments], [6, 5]);
    assert.equal(await create('seven'), 201);
    assert.equal(await create('eight'), 422);
    assert.equal((await c.account()).usage.environments, 6);
  });

  test('instances and memory count what runs: a deployment or a change that asks for more is refused', async () => {
    const running = await a.newProject({ replicas: 3, resources: { memory_mb: 128 } });
    assert.equal((await a.account()).usage.instances, 0, 'nothing runs yet');
    const { body } = await a.deploy(running);
    assert.equal((await a.ends(running, body.id)).state, 'succeeded');
    const { usage } = await a.account();
    assert.deepEqual([usage.instances, usage.memory_mb, usage.ports], [3, 384, 3]);
    const production = `/projects/${running}/environments/production`;
    assert.deepEqual(refusedFor(await a.call('PATCH', production, { replicas: 6 })), [
      422,
      'quota_exceeded',
      { path: 'instances', message: 'at most 5' },
    ]);
    assert.deepEqual(refusedFor(await a.call('PATCH', production, { resources: { memory_mb: 512 } })), [
      422,
      'quota_exceeded',
      { path: 'memory_mb', message: 'at most 1024' },
    ]);
    const other = await a.newProject({ replicas: 3, resources: { memory_mb: 64 } });
    const refused = await a.deploy(other);
    assert.deepEqual(refusedFor(refused).slice(0, 2), [422, 'quota_exceeded']);
    assert.match(refused.body.error.message, /at most 5 instances; it would have 6/);
    assert.deepEqual((await a.call('GET', `/projects/${other}/deployments`)).body.data, [], 'no record is made');
    assert.equal((await a.call('PATCH', `/projects/${other}/environments/production`, { replicas: 2 })).status, 200);
    assert.equal((await a.deploy(other)).status, 201);
  });

  test('variables are stored once by content, and their bytes are bounded over all environments', async () => {
    const project = await b.newProject({ variables: { SIZE: 'x'.repeat(1000) } });
    const { db } = t.app.store;
    const sets = async () =>
      (await db.selectFrom('variable_set').select('id').where('project_id', '=', project).execute()).length;
    for (const _ of [1, 2, 3]) {
      const { body } = await b.deploy(project);
      assert.equal((await b.ends(project, body.id)).state, 'succeeded');
    }
    assert.equal(await sets(), 1, 'three revisions have the same');
    const once = (await b.account()).usage.variables_bytes;
    assert.ok(once > 1000 && once < 2000, `${once}`);
    const production = `/projects/${project}/environments/production`;
    await b.call('PATCH', production, { variables: { SIZE: 'y' } });
    assert.deepEqual((await b.call('GET', production)).body.pending_changes, [
      { field: 'variables.SIZE', change: 'changed', from: null, to: null },
    ]);
    assert.equal(await sets(), 2);
    await b.call('PATCH', production, { variables: { SIZE: 'x'.repeat(1000) } });
    assert.equal(await sets(), 1, 'the same again, and what nobody has any more is gone');
    assert.deepEqual((await b.call('GET', production)).body.pending_changes, []);
    const more = { name: 'staging', variables: { SIZE: 'z'.repeat(2000) } };
    const refused = await b.call('POST', `/projects/${project}/environments`, more);
    const detail = { path: 'variables_bytes', message: 'at most 3000' };
    assert.deepEqual(refusedFor(refused), [422, 'quota_exceeded', detail]);
    assert.equal((await b.account()).usage.variables_bytes, once);
    assert.equal((await b.call('PATCH', production, { variables: { SIZE: null } })).status, 200);
  });

  test('requests of all tokens together', async () => {
    const c = await openTenant(t, 'C');
    const statuses = new Map<number, number>();
    for (let n = 0; n < 520; n++) {
      const { status } = await c.call('GET', '/token');
      statuses.set(status, (statuses.get(status) ?? 0) + 1);
    }
    assert.ok((statuses.get(200) ?? 0) >= 490 && (statuses.get(429) ?? 0) > 0, JSON.stringify([...statuses]));
    assert.equal((await b.call('GET', '/token')).status, 200);
  });
});

describe('ports', () => {
  let t: TestApp;
  before(async () => {
    t = await startApp({ env: { SLUICE_QUOTAS: 'ports=4' } });
  });
  after(() => t.stop());

  test('an account that has used its ports up is told so, and another one deploys', async () => {
    const a = await openTenant(t, 'A');
    const b = await openTenant(t, 'B');
    const large = await a.newProject({ replicas: 6, health_check: { ...quick.health_check, start_timeout_s: 5 } });
    const { body } = await a.deploy(large);
    const theirs = await b.newProject({ replicas: 2 });
    const other = await b.deploy(theirs);
    assert.equal((await b.ends(theirs, other.body.id)).state, 'succeeded');
    const { state, failure } = await a.ends(large, body.id);
    assert.deepEqual([state, failure?.code], ['failed', 'quota_exceeded']);
    assert.match(failure!.message, /has all 4 host ports that it may have \(quota ports\)/);
    assert.equal((await a.account()).usage.ports, 4, 'those included that were freed a moment ago');
    assert.equal((await b.account()).usage.ports, 2);
  });
});
