import assert from 'node:assert/strict';
import { test } from 'node:test';
import { searchedRows } from '../../../src/db/search.ts';
import { sharedApp } from '../../helpers/shared-app.ts';

const t = sharedApp({}, async () => {
  for (let i = 0; i < 45; i++) await t.newProject(`Project ${i}`);
});

async function pages(path: string, limit: number) {
  const names: string[] = [];
  let cursor: string | null = null;
  do {
    const { body } = await t.call('GET', `${path}?limit=${limit}${cursor ? `&cursor=${cursor}` : ''}`);
    names.push(...body.data.map((item: { name: string }) => item.name));
    assert.equal(body.page.has_more, body.page.next !== null);
    if (body.page.has_more) assert.equal(body.data.length, limit);
    cursor = body.page.next;
  } while (cursor);
  return names;
}

const newestFirst = Array.from({ length: 45 }, (_, i) => `Project ${44 - i}`);

test('every page size walks the whole list, newest first, each item once', async () => {
  for (const limit of [1, 7, 44, 45, 46, 100]) assert.deepEqual(await pages('/v1/projects', limit), newestFirst);
});

test('the default page has 20 items', async () => {
  const { body } = await t.call('GET', '/v1/projects');
  assert.equal(body.data.length, 20);
});

test('what is created or deleted while one walks neither repeats nor hides an item', async () => {
  const first = (await t.call('GET', '/v1/projects?limit=10')).body;
  const added = (await t.call('POST', '/v1/projects', { body: { name: 'late' } })).body;
  const lastShown = first.data.at(-1);
  await t.call('DELETE', `/v1/projects/${lastShown.id}`);
  const second = (await t.call('GET', `/v1/projects?limit=10&cursor=${first.page.next}`)).body;
  assert.equal(second.data[0].name, 'Project 34');
  await t.call('DELETE', `/v1/projects/${added.id}`);
});

test('a cursor of another list, of other filters, of another account or made by hand is 400 invalid_cursor', async () => {
  const { next } = (await t.call('GET', '/v1/projects?limit=1')).body.page;
  const project = (await t.call('GET', '/v1/projects?limit=1')).body.data[0].id;
  const refused = [
    `/v1/tokens?cursor=${next}`,
    `/v1/audit-log?cursor=${next}`,
    '/v1/projects?cursor=AAAA',
    `/v1/projects?cursor=${next.slice(0, -1)}`,
    `/v1/projects?cursor=${next.slice(0, -2)}zz`,
    `/v1/projects?cursor=${Buffer.from(project).toString('base64url')}`,
  ];
  const audit = (await t.call('GET', '/v1/audit-log?limit=1')).body.page.next;
  refused.push(`/v1/audit-log?cursor=${audit}&project_id=${project}`);
  for (const path of refused) {
    const { status, body } = await t.call('GET', path);
    assert.equal(status, 400, path);
    assert.equal(body.error.code, 'invalid_cursor', path);
  }
});

test('lists of environments have pages too', async () => {
  const project = (await t.call('POST', '/v1/projects', { body: { name: 'many' } })).body.id;
  for (const name of ['staging', 'preview', 'qa']) {
    assert.equal((await t.call('POST', `/v1/projects/${project}/environments`, { body: { name } })).status, 201);
  }
  const names = await pages(`/v1/projects/${project}/environments`, 1);
  assert.deepEqual(names.sort(), ['preview', 'production', 'qa', 'staging']);
});

const idsOf = (body: { data: { id: string }[] }) => body.data.map(({ id }) => id);

test('every list that people scroll is searched by the names it shows, and its cursor is bound to the search', async () => {
  const { id } = (await t.call('POST', '/v1/projects', { body: { name: 'Haystack', labels: ['needle'] } })).body;
  const at = `/v1/projects/${id}`;
  await t.call('POST', `${at}/domains`, { body: { hostname: 'needle.test', environment: 'production' } });
  await t.call('POST', `${at}/domains`, { body: { hostname: 'straw.test', environment: 'production' } });
  const image = 'registry.example/needle:1';
  const deployed = await t.call('POST', `${at}/deployments`, { body: { environment: 'production', image } });
  assert.equal(deployed.status, 201);
  const hook = { url: 'http://127.0.0.1:9/hook', events: ['*'] };
  for (const description of ['for the needle', 'for the straw']) {
    await t.call('POST', '/v1/webhooks', { body: { ...hook, description } });
  }
  for (const name of ['needle', 'straw']) {
    await t.call('POST', '/v1/tokens', { body: { name, scopes: ['events:read'] } });
  }
  for (const path of ['/v1/projects', `${at}/domains`, `${at}/deployments`, '/v1/webhooks', '/v1/tokens']) {
    const { status, body } = await t.call('GET', `${path}?search=NEEDLE`);
    assert.equal(status, 200, path);
    assert.equal(body.data.length, 1, path);
    assert.deepEqual(body.page, { next: null, has_more: false }, path);
    assert.deepEqual((await t.call('GET', `${path}?search=needle%20nothing`)).body.data, [], path);
    assert.deepEqual((await t.call('GET', `${path}?search=%25`)).body.data, [], `${path}: % is no wildcard`);
  }
  const entries = (await t.call('GET', '/v1/audit-log?search=tokens.create%20admin')).body;
  assert.equal(entries.data.length, 2);

  const first = (await t.call('GET', '/v1/projects?search=project&limit=10')).body;
  const second = (await t.call('GET', `/v1/projects?search=project&limit=10&cursor=${first.page.next}`)).body;
  assert.equal(new Set([...idsOf(first), ...idsOf(second)]).size, 20);
  for (const other of ['', '&search=Project%201', '&search=other']) {
    const { body } = await t.call('GET', `/v1/projects?limit=10${other}&cursor=${first.page.next}`);
    assert.equal(body.error.code, 'invalid_cursor', other);
  }
});

test('a search looks at so many items a request, and goes on in the next page until it has seen all', async () => {
  const { db } = t.app.store;
  const model = await db.selectFrom('project').selectAll().limit(1).executeTakeFirstOrThrow();
  const count = 2 * searchedRows + 100;
  const id = (n: number) => `prj_00${String(n).padStart(24, '0')}`;
  for (let from = 0; from < count; from += 500) {
    const rows = Array.from({ length: 500 }, (_, n) => from + n)
      .filter((n) => n < count)
      .map((n) => ({ ...model, id: id(n), name: n === 3 ? 'the one' : 'filler', slug: `s-${n}`, description: null }));
    await db.insertInto('project').values(rows).execute();
  }
  const found: string[] = [];
  let requests = 0;
  for (let cursor = ''; ; ) {
    const { body } = await t.call('GET', `/v1/projects?search=the%20one${cursor}`);
    requests++;
    found.push(...idsOf(body));
    if (body.page.next === null) break;
    assert.deepEqual(body.data, [], 'nothing until the last');
    cursor = `&cursor=${body.page.next}`;
  }
  assert.deepEqual(found, [id(3)]);
  assert.equal(requests, 3);
  await db.deleteFrom('project').where('id', '<=', id(count)).execute();
});
