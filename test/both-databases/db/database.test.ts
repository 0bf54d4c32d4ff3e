import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { sql } from 'kysely';
import { createApp } from '../../../src/app.ts';
import { readConfig } from '../../../src/config.ts';
import { latestVersion } from '../../../src/db/migrate.ts';
import { StartError } from '../../../src/lib/start-error.ts';
import { openStore } from '../../../src/store.ts';
import { call, isolatedEnv, onPostgres, startApp } from '../../helpers/app.ts';
import { createDatabase, startPostgres, type TestPostgres } from '../../helpers/postgres.ts';
import { startService } from '../../helpers/service.ts';
import { until } from '../../helpers/wait.ts';

test('a newer database is refused with a clear line', async () => {
  const { env, clean } = await isolatedEnv();
  const config = readConfig(env, false);
  const store = await openStore(config, () => {});
  // biome-ignore lint/suspicious/noExplicitAny: the table of migrations has no type of its own
  await (store.db as any)
    .insertInto('migration')
    .values({ version: latestVersion + 1, name: 'future' })
    .execute();
  await store.close();
  await assert.rejects(createApp(config), (error) => {
    assert.ok(error instanceof StartError);
    assert.match(error.lines[0]!, /^The database is at version \d+, this Sluice knows versions up to \d+/);
    return true;
  });
  await clean();
});

test('opening a database twice changes nothing the second time', async () => {
  const { env, clean } = await isolatedEnv();
  for (let i = 0; i < 2; i++) {
    const store = await openStore(readConfig(env, false), () => {});
    const rows = await store.db.selectFrom('meta').select('name').execute();
    assert.deepEqual(
      rows.map((row) => row.name),
      ['key_check'],
    );
    await store.close();
  }
  await clean();
});

if (onPostgres) {
  describe('several processes on one PostgreSQL', () => {
    test('two together admit 600 requests of one token, not 1,200', async () => {
      const clock = { now: () => 1_800_000_000_000 };
      const one = await startApp({ clock });
      const two = await createApp(readConfig({ ...one.env, SLUICE_PORT: '0' }, false), { clock });
      const results = await Promise.all(
        Array.from({ length: 1300 }, (_, i) => call(i % 2 ? one.url : two.apiUrl(), 'GET', '/v1/token')),
      );
      const admitted = results.filter((r) => r.status === 200);
      assert.equal(admitted.length, 600);
      const remaining = admitted.map((r) => Number(r.headers.get('x-ratelimit-remaining'))).sort((a, b) => a - b);
      assert.deepEqual(
        remaining,
        Array.from({ length: 600 }, (_, i) => i),
      );
      await two.stop();
      await one.stop();
    });

    test('a token revoked through one is refused by the other at once', async () => {
      const one = await startApp();
      const two = await createApp(readConfig({ ...one.env, SLUICE_PORT: '0' }, false));
      const { body } = await one.call('POST', '/v1/tokens', { body: { name: 'x', scopes: ['*'] } });
      assert.equal((await call(two.apiUrl(), 'GET', '/v1/token', { token: body.token })).status, 200);
      await one.call('DELETE', `/v1/tokens/${body.id}`);
      assert.equal((await call(two.apiUrl(), 'GET', '/v1/token', { token: body.token })).status, 401);
      await two.stop();
      await one.stop();
    });

    test('four that start at once on an empty database agree on one admin', async () => {
      const { env, clean } = await isolatedEnv();
      const apps = await Promise.all(Array.from({ length: 4 }, () => createApp(readConfig(env, false))));
      for (const app of apps) assert.equal((await call(app.apiUrl(), 'GET', '/v1/token')).status, 200);
      assert.equal((await call(apps[0]!.apiUrl(), 'GET', '/v1/tokens')).body.data.length, 1);
      for (const app of apps) await app.stop();
      await clean();
    });
  });

  describe('a PostgreSQL that goes away', () => {
    let server: TestPostgres;
    before(async () => {
      server = await startPostgres();
    });
    after(() => server.stop());

    test('503 while it is away; the service recovers by itself', async () => {
      const database = await createDatabase(server.url);
      const t = await startApp({ env: { SLUICE_DATABASE_URL: database.url } });
      assert.equal((await t.call('GET', '/v1/projects')).status, 200);
      assert.equal((await t.call('GET', '/readyz')).status, 200);

      await server.pause();
      const { status, body, headers } = await t.call('GET', '/v1/projects');
      assert.equal(status, 503);
      assert.equal(body.error.code, 'database_unavailable');
      assert.match(headers.get('retry-after')!, /^\d+$/);
      assert.equal((await t.call('GET', '/readyz')).status, 503);
      assert.equal((await t.call('GET', '/livez')).status, 200);
      await server.resume();

      assert.equal((await t.call('POST', '/v1/projects', { body: { name: 'after' } })).status, 201);
      assert.equal((await t.call('GET', '/readyz')).status, 200);
      await t.stop();
    });

    test('a restart ends the statements under way, and not the process', async () => {
      const database = await createDatabase(server.url);
      const t = await startApp({ env: { SLUICE_DATABASE_URL: database.url } });
      const { db } = t.app.store;
      const inUse = db.transaction().execute((tx) => sql`select pg_sleep(60)`.execute(tx));
      const lost = assert.rejects(inUse, /terminat|connection/i);
      const isSleeping = () => sql`select 1 from pg_stat_activity where query like 'select pg_sleep%'`.execute(db);
      await until('the statement runs', async () => (await isSleeping()).rows.length > 0);
      await server.pause();
      await server.resume();
      await lost;
      assert.equal((await t.call('POST', '/v1/projects', { body: { name: 'after' } })).status, 201);
      await t.stop();
    });

    test('a start while it is away waits for it, and says so', async () => {
      const database = await createDatabase(server.url);
      const { env, clean } = await isolatedEnv();
      await server.pause();
      const service = startService({ ...env, SLUICE_DATABASE_URL: database.url, SLUICE_LOG_LEVEL: 'info' });
      await until('the line', () => /waiting for the database\. The database cannot be reached/.test(service.output()));
      await server.resume();
      const url = await service.url;
      assert.equal((await call(url, 'GET', '/v1/projects')).status, 200);
      service.child.kill('SIGTERM');
      assert.deepEqual(await service.exited, [0, null]);
      await clean();
    });
  });
}
