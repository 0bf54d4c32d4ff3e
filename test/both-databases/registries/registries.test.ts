// Logins of registries: each is used for the images of its own account, and for no other.
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { registryLogins } from '../../../src/registries/registry-logins.ts';
import { registryPolicy } from '../../../src/registries/registry-policy.ts';
import { adminToken } from '../../helpers/app.ts';
import { cli } from '../../helpers/cli.ts';
import { sharedApp } from '../../helpers/shared-app.ts';

let own: string;
let second: string;
let foreign: { account: string; token: string; project: string };
const t = sharedApp({}, async () => {
  [own, second] = [await t.newProject('Own'), await t.newProject('Second')];
  const { id, token } = JSON.parse((await cli(['account', 'create', 'Other', '--json'], t.env)).stdout);
  const project = (await t.call('POST', '/v1/projects', { token, body: { name: 'Theirs' } })).body.id;
  foreign = { account: id, token, project };
});

const add = (body: object, token = adminToken) =>
  t.call('POST', '/v1/registries', { token, body: { host: 'ghcr.io', username: 'ann', password: 'secret', ...body } });
const logins = (files: { account: string | null; path: string }[] = []) => registryLogins({ ...t.app.store, files });

describe('through the API', () => {
  test('created, listed and deleted; the password is never shown, and sealed in the database', async () => {
    const { status, body } = await add({ host: 'index.docker.io', password: 'hidden-password' });
    assert.equal(status, 201);
    assert.match(body.id, /^reg_/);
    assert.deepEqual([body.host, body.username, body.project_ids], ['docker.io', 'ann', null]);
    const listed = await t.call('GET', '/v1/registries');
    assert.deepEqual(listed.body.data[0], body);
    assert.deepEqual((await t.call('GET', `/v1/registries/${body.id}`)).body, body);
    const { db } = t.app.store;
    const rows = await db.selectFrom('registry').selectAll().execute();
    for (const text of [JSON.stringify(body), JSON.stringify(listed.body), JSON.stringify(rows)])
      assert.ok(!text.includes('hidden-password'));
    assert.equal((await t.call('DELETE', `/v1/registries/${body.id}`)).status, 204);
    const gone = await t.call('DELETE', `/v1/registries/${body.id}`);
    assert.deepEqual([gone.status, gone.body.error.code], [404, 'registry_not_found']);
    assert.equal(await logins().find(own, 'library/shop:1'), null);
  });

  test('another account sees and deletes none; a bound token only those of its projects', async () => {
    const { body } = await add({ host: 'isolated.example' });
    assert.deepEqual((await t.call('GET', '/v1/registries', { token: foreign.token })).body.data, []);
    assert.equal((await t.call('DELETE', `/v1/registries/${body.id}`, { token: foreign.token })).status, 404);
    const scopes = ['projects:read', 'projects:write'];
    const bound = (await t.call('POST', '/v1/tokens', { body: { name: 'b', scopes, project_ids: [own] } })).body.token;
    const mine = (await add({ host: 'isolated.example' }, bound)).body;
    assert.deepEqual(mine.project_ids, [own]);
    const seen = (await t.call('GET', '/v1/registries', { token: bound })).body.data;
    assert.deepEqual(
      seen.map(({ id }: { id: string }) => id),
      [mine.id],
    );
    assert.equal((await t.call('DELETE', `/v1/registries/${body.id}`, { token: bound })).status, 404);
    assert.equal((await add({ project_ids: null }, bound)).status, 403);
    assert.equal((await add({ project_ids: [second] }, bound)).status, 404);
    assert.equal((await add({ project_ids: [foreign.project] })).status, 404);
  });

  test('400: a host that is none', async () => {
    for (const host of ['https://ghcr.io', 'ghcr.io/shop', 'GHCR.io', 'user@ghcr.io', '', 'a:b'])
      assert.equal((await add({ host })).status, 400, host);
  });
});

describe('for a pull', () => {
  test('a login of the account that deploys; one for the project before one for all, the newest first', async () => {
    const host = 'pull.example:5000';
    const user = async (project: string) => (await logins().find(project, `${host}/team/shop:1`))?.username;
    assert.equal(await user(own), undefined);
    await add({ host, username: 'all', password: 'p@ss:word' });
    assert.deepEqual(await logins().find(own, `${host}/team/shop@sha256:${'0'.repeat(64)}`), {
      username: 'all',
      password: 'p@ss:word',
      server: host,
    });
    await add({ host, username: 'one', project_ids: [own] });
    await add({ host, username: 'newer' });
    assert.deepEqual([await user(own), await user(second), await user(foreign.project)], ['one', 'newer', undefined]);
    assert.equal(await logins().find(own, 'elsewhere.example/shop:1'), null);
  });

  test('SLUICE_REGISTRY_CONFIG is for the first account, or for the one that it names', async () => {
    const write = (name: string, username: string) => {
      const path = join(t.dataDir, name);
      writeFileSync(path, JSON.stringify({ auths: { 'file.example': { username, password: 'x' } } }));
      return path;
    };
    const files = [
      { account: null, path: write('first.json', 'operator') },
      { account: foreign.account, path: write('other.json', 'tenant') },
    ];
    const user = async (of: typeof files, project: string) =>
      (await logins(of).find(project, 'file.example/shop:1'))?.username;
    assert.deepEqual([await user(files, own), await user(files, foreign.project)], ['operator', 'tenant']);
    assert.equal(await user(files.slice(0, 1), foreign.project), undefined);
    assert.equal(await user(files.slice(1), own), undefined);
    assert.throws(() => logins([{ account: null, path: '/nowhere.json' }]), /SLUICE_REGISTRY_CONFIG cannot read/);
  });
});

test('where there are several accounts, a registry inside is asked only if the operator lists it', async () => {
  const { db } = t.app.store;
  const lookup = async (name: string) => [
    { address: { 'inside.example': '10.0.0.9', localhost: '127.0.0.1' }[name] ?? '8.8.8.8', family: 4 },
  ];
  const refuse = registryPolicy({ db, lookup, allowed: ['listed.example:5000'] });
  for (const image of ['127.0.0.1:5000/shop:1', 'localhost/shop:1', '[::1]:5000/shop:1', 'inside.example/shop:1'])
    assert.match((await refuse(image)) ?? '', /not public.*SLUICE_REGISTRY_ALLOW/, image);
  for (const image of ['listed.example:5000/shop:1', 'registry.example/shop:1', 'nginx:1'])
    assert.equal(await refuse(image), null, image);
});

test('the address of a deleted project stays free for its account, and for no other', async () => {
  const named = { name: 'Gone', slug: 'gone' };
  const urlOf = async (id: string, token = adminToken) =>
    new URL((await t.call('GET', `/v1/projects/${id}/environments/production`, { token })).body.url).hostname;
  const first = (await t.call('POST', '/v1/projects', { body: named })).body.id;
  assert.equal(await urlOf(first), 'gone-production.localhost');
  await t.call('DELETE', `/v1/projects/${first}`);
  const taken = (await t.call('POST', '/v1/projects', { token: foreign.token, body: named })).body.id;
  assert.match(await urlOf(taken, foreign.token), /^gone-production-[0-9a-z]{8}\.localhost$/);
  const again = (await t.call('POST', '/v1/projects', { body: named })).body.id;
  assert.equal(await urlOf(again), 'gone-production.localhost');
});
