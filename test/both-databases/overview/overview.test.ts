// Lists and counts over all projects of an account: what they show, how they are searched, filtered and sorted.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { startApp, type TestApp } from '../../helpers/app.ts';
import { Shop } from '../../helpers/shop.ts';
import { until } from '../../helpers/wait.ts';

let t: TestApp;
before(async () => {
  t = await startApp({ tokenLimit: 1_000_000 });
});
after(() => t.stop());

const get = async (path: string, token?: string) =>
  (await t.call('GET', `/v1${path}`, token === undefined ? {} : { token })).body;
const namesOf = async (query: string, token?: string): Promise<string[]> => {
  const names: string[] = [];
  for (let cursor = ''; ; ) {
    const { data, page } = await get(`/overview/projects?limit=2${query}${cursor}`, token);
    names.push(...data.map(({ name }: { name: string }) => name));
    if (page.next === null) return names;
    cursor = `&cursor=${page.next}`;
  }
};

test('projects with what runs in them, found by every name that is shown, in every order', async () => {
  const shop = await Shop.open(t.url, { canary: { bake_s: 3600, advance: 'manual' } });
  await shop.api('PATCH', '', { name: 'beta shop', labels: ['Retail'] });
  await shop.released('registry.example/shop:1.0');
  await shop.visit();
  const note = { strategy: 'canary', canary_percent: 25, note: 'New checkout' };
  const { id } = await shop.deploy('registry.example/shop:1.1', note);
  await shop.reaches(id, 'canary');
  for (const name of ['Gamma 100%', 'alpha_1', 'delta']) await t.call('POST', '/v1/projects', { body: { name } });
  const broken = await Shop.open(t.url);
  await broken.api('PATCH', '', { name: 'broken' });
  await t.app.store.db
    .updateTable('environment')
    .set({ health_state: 'down', health_reason: 'No instance of r1 is healthy.' })
    .where('project_id', '=', broken.project)
    .execute();

  const everything = ['broken', 'delta', 'alpha_1', 'Gamma 100%', 'beta shop'];
  assert.deepEqual(await namesOf(''), everything);
  assert.deepEqual(await namesOf('&sort=name'), ['alpha_1', 'beta shop', 'broken', 'delta', 'Gamma 100%']);
  assert.deepEqual((await namesOf('&sort=health')).slice(0, 2), ['broken', 'beta shop']);
  assert.deepEqual((await namesOf('&sort=deployed'))[0], 'beta shop');
  assert.deepEqual((await namesOf('&sort=deployed')).toSorted(), everything.toSorted(), 'each once');
  assert.deepEqual(await namesOf('&health=down'), ['broken']);
  for (const [search, found] of [
    ['SHOP:1.0', ['beta shop']],
    ['beta retail', ['beta shop']],
    ['100%25', ['Gamma 100%']],
    ['a_', ['alpha_1']],
    ['beta nothing', []],
  ] as const) {
    assert.deepEqual(await namesOf(`&search=${search}`), found, search);
  }

  const { data } = await get('/overview/projects?search=beta');
  const [environment] = data[0].environments;
  const { active_revision, image, traffic, firing_alerts, last_deployment, health } = environment;
  assert.deepEqual(
    { active_revision, image, firing_alerts, health: health.state },
    { active_revision: 'r1', image: 'registry.example/shop:1.0', firing_alerts: 0, health: 'healthy' },
  );
  assert.deepEqual(
    traffic.map(({ revision, percent }: { revision: string; percent: number }) => [revision, percent]),
    [
      ['r1', 75],
      ['r2', 25],
    ],
  );
  assert.equal(last_deployment.created_by_name, 'admin');
  assert.deepEqual([last_deployment.canary.step, last_deployment.canary.percent], [1, 25]);
  await until('a request to be counted', async () => {
    const [project] = (await get('/overview/projects?search=beta')).data;
    const { rate, error_rate, rates } = project.environments[0].requests;
    return rate > 0 && error_rate === 0 && rates.length === 30 && rates.at(-1) > 0;
  });

  const totals = await get('/overview');
  assert.deepEqual(totals.health, { down: 1, degraded: 0, healthy: 1, idle: 3 });
  assert.deepEqual([totals.projects, totals.in_progress, totals.firing_alerts], [5, 1, 0]);
  assert.equal(totals.incidents[0].project_name, 'broken');
  const deployments = await get('/deployments?search=checkout%20admin');
  assert.deepEqual(
    deployments.data.map((each: { id: string; project_name: string }) => [each.id, each.project_name]),
    [[id, 'beta shop']],
  );
  assert.equal((await get(`/deployments?project_id=${shop.project}&environment=production`)).data.length, 2);
});

test('a token sees its projects only, and nothing that it has no scope for', async () => {
  const projects = (await get('/overview/projects?limit=100')).data;
  const own = projects.find(({ name }: { name: string }) => name === 'beta shop').id;
  const { body } = await t.call('POST', '/v1/tokens', {
    body: { name: 'narrow', scopes: ['projects:read'], project_ids: [own] },
  });
  assert.deepEqual(await namesOf('', body.token), ['beta shop']);
  const [{ environments }] = (await get('/overview/projects', body.token)).data;
  const { last_deployment, firing_alerts, requests } = environments[0];
  assert.deepEqual([last_deployment, firing_alerts, requests], [null, null, null]);
  const totals = await get('/overview', body.token);
  assert.deepEqual([totals.projects, totals.firing_alerts, totals.in_progress], [1, null, null]);
  assert.deepEqual(totals.incidents, []);
  assert.equal((await get('/deployments', body.token)).error.code, 'insufficient_scope');
});

test('alerts and domains of all projects, with the name of their project', async () => {
  const [{ id }] = (await get('/overview/projects?search=delta')).data;
  const domain = { hostname: 'delta.test', environment: 'production' };
  await t.call('POST', `/v1/projects/${id}/domains`, { body: domain });
  const { data } = await get('/domains?search=delta');
  assert.deepEqual([data[0].hostname, data[0].project_id, data[0].project_name], ['delta.test', id, 'delta']);
  assert.deepEqual((await get('/domains?search=elsewhere')).data, []);
  const rule = {
    environment: 'production',
    name: 'spares',
    metric: 'healthy_instances',
    comparator: 'lt',
    threshold: 5,
  };
  const [{ id: shop }] = (await get('/overview/projects?search=beta')).data;
  await t.call('POST', `/v1/projects/${shop}/alert-rules`, { body: rule });
  const alert = await until('an alert', async () => (await get('/alerts?state=firing&search=spares')).data[0]);
  assert.deepEqual([alert.project_id, alert.project_name, alert.state], [shop, 'beta shop', 'firing']);
  assert.equal((await get('/overview')).firing_alerts, 1);
  const [project] = (await get('/overview/projects?search=beta')).data;
  assert.equal(project.environments[0].firing_alerts, 1);
});

test('the audit log has names, filters, and what a change replaced', async () => {
  const [{ id }] = (await get('/overview/projects?search=alpha')).data;
  const at = `/v1/projects/${id}/environments/production`;
  await t.call('PATCH', at, { body: { variables: { KEY: 'one' } } });
  await t.call('PATCH', at, { body: { canary: { bake_s: 90 }, variables: { KEY: 'two' } } });
  const entries = (query: string) => get(`/audit-log?project_id=${id}${query}`).then(({ data }) => data);
  const [latest, earlier] = await entries('&action=environments.update');
  assert.deepEqual(latest.changes, [
    { field: 'canary.bake_s', from: '60', to: '90' },
    { field: 'variables.KEY', from: null, to: null },
  ]);
  assert.deepEqual(earlier.changes, [{ field: 'variables', from: '[]', to: '["KEY"]' }]);
  assert.deepEqual([latest.token_name, latest.project_name], ['admin', 'alpha_1']);
  assert.equal((await entries('&action=environments')).length, 2);
  assert.equal((await entries('&search=admin%20update')).length, 2);
  assert.equal((await entries(`&until=${latest.created_at}`)).length, (await entries('')).length - 1);
  assert.deepEqual(await entries('&by=tok_01k9xw3v5qfk2t8m7c4b6d9e0h'), []);
});

test('the audit log says what was chosen, changed and deleted of everything, and no secret', async () => {
  const [{ id }] = (await get('/overview/projects?search=alpha')).data;
  const changesOf = async (action: string) => {
    const [entry] = (await get(`/audit-log?action=${action}&limit=1`)).data;
    return Object.fromEntries(
      entry.changes.map(({ field, from, to }: { field: string; from: string | null; to: string | null }) => [
        field,
        `${from} → ${to}`,
      ]),
    );
  };
  const rules = `/v1/projects/${id}/alert-rules`;
  const rule = { environment: 'production', name: 'slow', metric: 'p95_ms', comparator: 'gt', threshold: 500 };
  const { body: made } = await t.call('POST', rules, { body: rule });
  assert.equal((await changesOf('alert-rules.create')).threshold, 'null → 500');
  await t.call('PATCH', `${rules}/${made.id}`, { body: { threshold: 250, enabled: false } });
  assert.deepEqual(await changesOf('alert-rules.update'), { threshold: '500 → 250', enabled: 'true → false' });
  await t.call('DELETE', `${rules}/${made.id}`);
  assert.equal((await changesOf('alert-rules.delete')).name, '"slow" → null');

  const hook = { url: 'http://127.0.0.1:9/one', events: ['alert.fired'] };
  const { body: webhook } = await t.call('POST', '/v1/webhooks', { body: hook });
  assert.deepEqual(Object.keys(await changesOf('webhooks.create')).sort(), ['events', 'url']);
  await t.call('PATCH', `/v1/webhooks/${webhook.id}`, { body: { url: 'http://127.0.0.1:9/two', state: 'paused' } });
  assert.deepEqual(await changesOf('webhooks.update'), {
    url: '"http://127.0.0.1:9/one" → "http://127.0.0.1:9/two"',
    state: '"enabled" → "paused"',
  });
  const { body: rotated } = await t.call('POST', `/v1/webhooks/${webhook.id}/rotate-secret`, { body: {} });
  assert.deepEqual(await changesOf('webhooks.rotate-secret'), { secret: 'null → null' });
  await t.call('DELETE', `/v1/webhooks/${webhook.id}`);
  assert.equal((await changesOf('webhooks.delete')).state, '"paused" → null');

  const { body: token } = await t.call('POST', '/v1/tokens', { body: { name: 'passing', scopes: ['events:read'] } });
  assert.deepEqual(await changesOf('tokens.create'), { name: 'null → "passing"', scopes: 'null → ["events:read"]' });
  await t.call('DELETE', `/v1/tokens/${token.id}`);
  assert.equal((await changesOf('tokens.revoke')).name, '"passing" → null');
  const login = { host: 'registry.example', username: 'bot', password: 'of-the-registry' };
  const { body: registry } = await t.call('POST', '/v1/registries', { body: login });
  await t.call('DELETE', `/v1/registries/${registry.id}`);
  assert.equal((await changesOf('registries.delete')).username, '"bot" → null');

  const shop = await Shop.open(t.url, { canary: { advance: 'manual', bake_s: 3600 } });
  await shop.released('registry.example/shop:1');
  const canary = await shop.deploy('registry.example/shop:2', { strategy: 'canary' });
  assert.equal((await changesOf('deployments.create')).image, 'null → "registry.example/shop:2"');
  await shop.reaches(canary.id, 'canary');
  await shop.api('POST', `/deployments/${canary.id}/pause`);
  assert.deepEqual(await changesOf('deployments.pause'), { 'canary.phase': '"baking" → "paused"' });
  await shop.api('POST', `/deployments/${canary.id}/abort`);
  assert.equal((await changesOf('deployments.abort')).state, '"canary" → "aborting"');
  await shop.reaches(canary.id, 'canceled');
  await t.call('DELETE', `/v1/projects/${shop.project}`);
  assert.ok('name' in (await changesOf('projects.delete')));

  const everything = JSON.stringify((await get('/audit-log?limit=100')).data);
  for (const secret of [webhook.secret, rotated.secret, token.token, login.password]) {
    assert.ok(!everything.includes(secret));
  }
});

test('two revisions are compared by image, settings and the names of their variables', async () => {
  const shop = await Shop.open(t.url, { variables: { SAME: '1', GONE: '1', OTHER: '1' } });
  await shop.released('registry.example/shop:1');
  await shop.set({ resources: { memory_mb: 256 }, variables: { GONE: null, OTHER: '2', NEW: '1' } });
  await shop.released('registry.example/shop:2');
  const changes = (await shop.api('GET', '/environments/production/revisions/r2/changes')).body;
  assert.deepEqual(changes, {
    from: 'r1',
    to: 'r2',
    changes: [
      { field: 'image', from: 'registry.example/shop:1', to: 'registry.example/shop:2', change: 'changed' },
      { field: 'resources.memory_mb', change: 'changed', from: '512', to: '256' },
      { field: 'variables.GONE', change: 'removed', from: null, to: null },
      { field: 'variables.NEW', change: 'added', from: null, to: null },
      { field: 'variables.OTHER', change: 'changed', from: null, to: null },
    ],
  });
  const back = (await shop.api('GET', '/environments/production/revisions/r1/changes?from=r2')).body;
  assert.deepEqual([back.from, back.to, back.changes.length], ['r2', 'r1', 5]);
  assert.equal((await shop.api('GET', '/environments/production/revisions/r1/changes')).body.from, null);
  assert.equal((await shop.api('GET', '/environments/production/revisions/r1/changes?from=r9')).status, 404);
});
