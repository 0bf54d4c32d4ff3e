// What instances print stays, can be read in pages, searched and followed, and goes with its environment.
import assert from 'node:assert/strict';
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import type { LogEntry } from '../../../src/contract/logs.ts';
import { onPostgres } from '../../helpers/app.ts';
import { Follower } from '../../helpers/follower.ts';
import { sharedApp } from '../../helpers/shared-app.ts';
import { Shop } from '../../helpers/shop.ts';
import { until } from '../../helpers/wait.ts';

let shop: Shop;
const logs = '/environments/production/logs';
const app = sharedApp({}, async ({ url }) => {
  shop = await Shop.open(url, { variables: { STANDIN_ERROR_RATE: '1' } });
});

const read = async (query = ''): Promise<LogEntry[]> => {
  const { status, body } = await shop.api('GET', `${logs}${query}`);
  assert.equal(status, 200, JSON.stringify(body));
  return body.data;
};
const textsOf = (entries: LogEntry[]) => entries.map(({ text }) => text);
/** Every visit makes the instance print its path. */
const print = (text: string) => shop.visit(undefined, `/${text}`);
const printed = (text: string) => `GET /${text} 500`;

test('lines stay over a rollout, with their revision and instance, though the instance is gone', async () => {
  await shop.released('shop:1');
  await print('first');
  await until('it to be stored', async () => (await read('?search=first')).length === 1);
  const [before] = await read('?search=first');
  assert.deepEqual(
    [before!.revision, before!.stream, before!.text, before!.level],
    ['r1', 'stderr', printed('first'), null],
  );
  await shop.released('shop:2');
  await print('second');
  await until('the old instance to be gone', async () => {
    const { rows } = { rows: await app.app.store.db.selectFrom('instance').select('revision').execute() };
    return rows.every(({ revision }) => revision === 2);
  });
  await until('the new line', async () => (await read('?search=second')).length === 1);
  assert.deepEqual(await read('?search=first'), [before]);
  assert.deepEqual(await read(`?instance=${before!.instance}&revision=r1&stream=stderr`), [before]);
  assert.equal(
    (await read('?revision=r1')).some(({ revision }) => revision !== 'r1'),
    false,
  );
  const { body } = await shop.api('GET', `/deployments/${(await shop.revision('r1')).deployment_id}/logs`);
  assert.ok(
    body.data.some(({ text }: { text: string }) => text === printed('first')),
    'also by the deployment',
  );
});

test('pages: every entry once, newest or oldest first, within times', async () => {
  for (let n = 0; n < 25; n++) await print(`page-${n}`);
  await until('all', async () => (await read('?search=page-&limit=100')).length === 25);
  for (const order of ['newest', 'oldest']) {
    const found: LogEntry[] = [];
    let cursor = '';
    do {
      const { body } = await shop.api('GET', `${logs}?search=page-&limit=4&order=${order}${cursor}`);
      found.push(...body.data);
      cursor = body.page.next && `&cursor=${body.page.next}`;
    } while (cursor);
    const expected = Array.from({ length: 25 }, (_, n) => printed(`page-${n}`));
    assert.deepEqual(textsOf(found), order === 'oldest' ? expected : expected.reverse());
    assert.equal(new Set(found.map(({ id }) => id)).size, 25);
  }
  const all = await read('?search=page-&order=oldest');
  const { at } = all[12]!;
  const [since, earlier] = [await read(`?search=page-&since=${at}`), await read(`?search=page-&until=${at}`)];
  assert.deepEqual(textsOf([...since, ...earlier].reverse()), textsOf(all));
  assert.ok(earlier.every((entry) => entry.at < at) && since.every((entry) => entry.at >= at));
});

test('followers get each line once, over a rollout, and resume', async () => {
  const path = `/v1/projects/${shop.project}${logs}/stream`;
  const follower = await Follower.open(app.url, { path });
  const texts = () => follower.events.map(({ data }) => (data as unknown as LogEntry).text);
  await print('live-1');
  await until('the first', () => texts().includes(printed('live-1')));
  await shop.released('shop:3');
  await print('live-2');
  await until('the second', () => texts().includes(printed('live-2')));
  follower.close();
  assert.equal(new Set(follower.events.map(({ data }) => data.id)).size, follower.events.length);
  assert.ok(!texts().includes(printed('first')), 'nothing from before');
  const last = follower.events.find(({ data }) => (data as unknown as LogEntry).text === printed('live-1'))!;
  await print('live-3');
  const resumed = await Follower.open(app.url, { path, headers: { 'last-event-id': last.id } });
  await until('what came since', () =>
    resumed.events.some(({ data }) => (data as unknown as LogEntry).text === printed('live-3')),
  );
  resumed.close();
  const got = resumed.events.map(({ data }) => (data as unknown as LogEntry).text);
  assert.ok(got.includes(printed('live-2')) && !got.includes(printed('live-1')), got.join(', '));
  const searched = await Follower.open(app.url, { path, query: `?since=${new Date(0).toISOString()}&search=live-2` });
  await until('the one searched for', () => searched.events.length > 0);
  searched.close();
});

test('only those who may see the project’s deployments see its logs', async () => {
  const token = async (body: object) =>
    (await app.call('POST', '/v1/tokens', { body: { name: 'reader', ...body } })).body.token;
  const other = await app.newProject('Other');
  const path = `/v1/projects/${shop.project}${logs}`;
  const cases: [object, number][] = [
    [{ scopes: ['deployments:read'] }, 200],
    [{ scopes: ['projects:read'] }, 403],
    [{ scopes: ['deployments:read'], project_ids: [other] }, 404],
  ];
  for (const [body, status] of cases) {
    const secret = await token(body);
    assert.equal((await app.call('GET', path, { token: secret })).status, status, JSON.stringify(body));
    if (status === 200) continue;
    assert.equal((await app.call('GET', `${path}/stream`, { token: secret })).status, status, 'the stream too');
  }
  assert.equal((await shop.api('GET', '/environments/absent/logs')).status, 404);
  assert.equal((await shop.api('GET', `${logs}?since=yesterday`)).status, 400);
});

test('logs go with their project', async () => {
  const { db } = app.app.store;
  assert.equal((await shop.api('DELETE', '')).status, 204);
  const count = async (table: 'log_segment' | 'log_stream' | 'log_blob') =>
    (await db.selectFrom(table).selectAll().where('project_id', '=', shop.project).execute()).length;
  await until('no row to be left', async () => {
    const counts = [await count('log_segment'), await count('log_stream'), await count('log_blob')];
    return counts.every((rows) => rows === 0);
  });
  const folder = join(app.dataDir, 'logs', shop.project);
  await until('no file to be left', () => !existsSync(folder) || readdirSync(folder).length === 0);
  if (onPostgres) assert.equal(existsSync(join(app.dataDir, 'logs')), false, 'the database has them');
});
