// Followers get every event, in order, whatever happens to the clock or to the database beneath.
import assert from 'node:assert/strict';
import { cpSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import pg from 'pg';
import { createApp } from '../../../src/app.ts';
import { readConfig } from '../../../src/config.ts';
import type { Db } from '../../../src/db/database.ts';
import { insertEvent } from '../../../src/events/outbox.ts';
import { createIds, idFloor } from '../../../src/lib/ids.ts';
import { openStore } from '../../../src/store.ts';
import { sweepOld } from '../../../src/webhooks/delivery-sweep.ts';
import { call, isolatedEnv, onPostgres, postgresUrl, startApp } from '../../helpers/app.ts';
import { accountOf, emit, emitIn } from '../../helpers/emit.ts';
import { Follower } from '../../helpers/follower.ts';
import { createDatabase, startPostgres } from '../../helpers/postgres.ts';
import { sharedApp } from '../../helpers/shared-app.ts';
import { until } from '../../helpers/wait.ts';

const t = sharedApp({ tokenLimit: 1_000_000 });
const hourMs = 3600_000;

/** Writes an event as a process would whose clock is off by this much. */
async function emitAt(db: Db, projectId: string, offMs: number): Promise<void> {
  const clock = { now: () => Date.now() + offMs };
  const event = { type: 'alert.fired', accountId: await accountOf(db, projectId), projectId, data: {} } as const;
  await db.transaction().execute((tx) => insertEvent(tx, { ids: createIds(clock), clock }, event));
}

const sequences = (events: { data: { sequence: number } }[]) => events.map(({ data }) => data.sequence);
const idsOf = async (url: string, project: string): Promise<string[]> =>
  (await call(url, 'GET', `/v1/events?project_id=${project}&limit=100`)).body.data.map(({ id }: { id: string }) => id);

async function resume(url: string, project: string, after: string, count: number): Promise<Follower> {
  const follower = await Follower.open(url, { query: `?project_id=${project}`, headers: { 'last-event-id': after } });
  await follower.has(count);
  return follower;
}

describe('a clock that is set back by an hour', () => {
  test('a follower that stays, one that resumes, and the list: all have every event in order', async () => {
    const { db } = t.app.store;
    const project = await t.newProject();
    const staying = await Follower.open(t.url, { query: `?project_id=${project}` });
    for (const offMs of [0, -hourMs, -hourMs + 1000, -2 * hourMs]) await emitAt(db, project, offMs);
    assert.deepEqual(sequences(await staying.has(4)), [1, 2, 3, 4]);
    staying.close();
    const resuming = await resume(t.url, project, staying.events[0]!.id, 3);
    assert.deepEqual(sequences(resuming.events), [2, 3, 4]);
    assert.ok(!resuming.text.includes('event: reset'));
    resuming.close();
    const read = async (query: string) => (await t.call('GET', `/v1/events?project_id=${project}${query}`)).body;
    const first = await read('&limit=3');
    const second = await read(`&limit=3&cursor=${first.page.next}`);
    const listed = [...first.data, ...second.data].map(({ sequence }: { sequence: number }) => sequence);
    assert.deepEqual(listed, [4, 3, 2, 1]);
    const ofKind = (await t.call('GET', '/v1/events?type=alert.fired&limit=4')).body.data;
    assert.deepEqual(
      ofKind.map(({ sequence }: { sequence: number }) => sequence),
      [4, 3, 2, 1],
    );
  });
});

describe('Last-Event-ID of an event that is not stored', () => {
  test('the follower is told, and gets everything from the oldest event on', async () => {
    const project = await t.newProject();
    for (let n = 0; n < 3; n++) await emit(t.app.store.db, project);
    for (const unknown of [idFloor('evt', Date.now() + hourMs), idFloor('evt', Date.now() - 1000 * hourMs)]) {
      const follower = await resume(t.url, project, unknown, 3);
      assert.deepEqual(sequences(follower.events), [1, 2, 3]);
      const told = /event: reset\ndata: (.*)\n\n/.exec(follower.text)![1]!;
      assert.deepEqual(JSON.parse(told), { type: 'reset', last_event_id: unknown });
      assert.ok(follower.text.indexOf('event: reset') < follower.text.indexOf('id: evt_'));
      follower.close();
    }
    const all = await resume(t.url, project, idFloor('evt', 0), 3);
    assert.ok(!all.text.includes('event: reset'), 'it asked for everything');
    all.close();
  });

  test('a stream whose last event the database has lost ends, so that its client resumes', async () => {
    const project = await t.newProject();
    const follower = await Follower.open(t.url, { query: `?project_id=${project}` });
    await emit(t.app.store.db, project);
    const [event] = await follower.has(1);
    await t.app.store.db.deleteFrom('event').where('id', '=', event!.id).execute();
    await until('the end of the stream', () => follower.ended);
  });
});

test('a sweep of everything does not let positions begin anew', async () => {
  const own = await startApp();
  const { db } = own.app.store;
  const project = (await own.call('POST', '/v1/projects', { body: { name: 'Shop' } })).body.id;
  for (let n = 0; n < 3; n++) await emit(db, project);
  const follower = await Follower.open(own.url, { query: `?project_id=${project}` });
  while (await sweepOld(db, Date.now() + hourMs));
  await emit(db, project);
  assert.deepEqual(sequences(await follower.has(1)), [4]);
  assert.equal((await idsOf(own.url, project)).length, 2, 'the last one stays');
  follower.close();
  await own.stop();
});

/** Everything in a database, as a dump has it: rows without the state of the server. */
async function restore(fromUrl: string, toUrl: string): Promise<void> {
  const [from, to] = [fromUrl, toUrl].map((connectionString) => new pg.Client({ connectionString })) as [
    pg.Client,
    pg.Client,
  ];
  await Promise.all([from.connect(), to.connect()]);
  await to.query('set session_replication_role = replica');
  const tables = await from.query("select tablename as name from pg_tables where schemaname = 'public'");
  for (const { name } of tables.rows) {
    const { rows } = await from.query(`select coalesce(json_agg(t), '[]')::text as rows from ${name} t`);
    await to.query(`delete from ${name}`);
    await to.query(`insert into ${name} select * from json_populate_recordset(null::${name}, $1::json)`, [
      rows[0].rows,
    ]);
  }
  await Promise.all([from.end(), to.end()]);
}

/** A server that has carried out many transactions. */
async function spendTransactionNumbers(url: string): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  await client.query(`create temp table spent (n int); do $$ begin for i in 1..20000 loop
    begin insert into spent values (i); exception when others then null; end; end loop; end $$`);
  await client.end();
}

async function resumesIn(env: Record<string, string>, project: string, after: string): Promise<void> {
  const restored = await createApp(readConfig(env, false));
  try {
    await emit(restored.store.db, project);
    const follower = await resume(restored.apiUrl(), project, after, 3);
    assert.deepEqual(sequences(follower.events), [2, 3, 4]);
    await emit(restored.store.db, project);
    assert.deepEqual(sequences(await follower.has(4)), [2, 3, 4, 5]);
    const listed = (await call(restored.apiUrl(), 'GET', `/v1/events?project_id=${project}`)).body.data;
    assert.deepEqual(
      listed.map(({ sequence }: { sequence: number }) => sequence),
      [5, 4, 3, 2, 1],
    );
    follower.close();
  } finally {
    await restored.stop();
  }
}

describe('a database restored from a dump', () => {
  test('a follower resumes and gets what came after, old and new', async (c) => {
    const server = onPostgres ? await startPostgres() : null;
    c.after(() => server?.stop());
    if (onPostgres) await spendTransactionNumbers(postgresUrl!);
    const own = await startApp();
    const project = (await own.call('POST', '/v1/projects', { body: { name: 'Shop' } })).body.id;
    for (let n = 0; n < 3; n++) await emit(own.app.store.db, project);
    const first = (await idsOf(own.url, project)).at(-1)!;
    const target = await isolatedEnv();
    await own.app.stop();
    if (server) {
      target.env.SLUICE_DATABASE_URL = server.url;
      await (await openStore(readConfig(target.env, false), () => {})).close();
      await restore(own.env.SLUICE_DATABASE_URL!, server.url);
    } else {
      cpSync(own.dataDir, target.dataDir, { recursive: true });
    }
    cpSync(join(own.dataDir, 'secret.key'), join(target.dataDir, 'secret.key'));
    await resumesIn(target.env, project, first);
    await target.clean();
    await own.stop();
  });
});

if (onPostgres) {
  test('a follower resumes after a copy from SQLite, whose positions are above those of this server', async () => {
    const own = await startApp();
    const project = (await own.call('POST', '/v1/projects', { body: { name: 'Shop' } })).body.id;
    for (let n = 0; n < 3; n++) await emit(own.app.store.db, project);
    const copied = own.app.store.db.updateTable('event').set((e) => ({ position: e('position', '+', 10_000_000) }));
    await copied.execute();
    const first = (await idsOf(own.url, project)).at(-1)!;
    await own.app.stop();
    await resumesIn(own.env, project, first);
    await own.stop();
  });

  test('many transactions at once, some open for long: each event once, those of a project in sequence', async () => {
    const projects = await Promise.all(Array.from({ length: 8 }, () => t.newProject()));
    const { db } = t.app.store;
    const followers = [await Follower.open(t.url), await Follower.open(t.url)];
    const writers = projects.map(async (project, writer) => {
      for (let n = 0; n < 20; n++) {
        await db.transaction().execute(async (tx) => {
          await emitIn(tx, project);
          if ((n + writer) % 7 === 0) await new Promise((resolve) => setTimeout(resolve, 30 * (1 + (writer % 3))));
          if (n % 5 === 0) await emitIn(tx, project, 'alert.resolved');
        });
      }
    });
    await Promise.all(writers);
    for (const follower of followers) {
      const events = await follower.has(8 * 24);
      const expected = Array.from({ length: 24 }, (_, n) => n + 1);
      for (const project of projects)
        assert.deepEqual(sequences(events.filter(({ data }) => data.project_id === project)), expected);
      follower.close();
    }
    const order = followers.map(({ events }) => events.map(({ id }) => id));
    assert.deepEqual(order[0], order[1]);
  });

  test('a transaction that is open in another database of the server holds nothing back', async () => {
    const neighbour = await createDatabase(postgresUrl!);
    const client = new pg.Client({ connectionString: neighbour.url });
    await client.connect();
    await client.query('begin; create table busy (n int)');
    const project = await t.newProject();
    const follower = await Follower.open(t.url, { query: `?project_id=${project}` });
    await emit(t.app.store.db, project);
    assert.deepEqual(sequences(await follower.has(1)), [1]);
    follower.close();
    await client.end();
    await neighbour.drop();
  });
}
