import assert from 'node:assert/strict';
import { test } from 'node:test';
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
