// A network that drops packets: connections that neither answer nor end. Everything gives up on them after a while, says
// so, and goes on by itself once the database can be reached again.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { sql } from 'kysely';
import { connectProcesses } from '../../src/signals/process-signals.ts';
import { subscribe } from '../../src/signals/signals.ts';
import { openStore } from '../../src/store.ts';
import { isolatedEnv, startApp, type TestApp } from '../helpers/app.ts';
import { createDatabase, startPostgres, type TestPostgres } from '../helpers/postgres.ts';
import { startService } from '../helpers/service.ts';
import { Shop } from '../helpers/shop.ts';
import { startTcpProxy, type TcpProxy } from '../helpers/tcp-proxy.ts';
import { until } from '../helpers/wait.ts';

const limits = '?statement_timeout=1500&connect_timeout=1';

describe('a PostgreSQL that goes silent', () => {
  let server: TestPostgres;
  let proxy: TcpProxy;
  let t: TestApp;
  before(async () => {
    server = await startPostgres();
    const database = new URL((await createDatabase(server.url)).url);
    proxy = await startTcpProxy(Number(database.port));
    database.port = String(proxy.port);
    t = await startApp({ tokenLimit: 1_000_000, env: { SLUICE_DATABASE_URL: database.href + limits } });
  });
  after(async () => {
    proxy?.open();
    await t?.stop();
    await proxy?.close();
    await server?.stop();
  });

  test('requests fail in time, /readyz says why, /livez stays 200, and a queued deployment is carried out afterwards', async () => {
    const shop = await Shop.open(t.url);
    await shop.released('registry.example/shop:1');
    const { id } = await shop.deploy('registry.example/shop:2');
    proxy.silence();

    const refused = await t.call('GET', '/v1/projects');
    assert.equal(refused.status, 503);
    assert.equal(refused.body.error.code, 'database_unavailable');
    const notReady = async () => {
      const { status, body } = await t.call('GET', '/readyz');
      return status === 503 && body;
    };
    assert.match(
      await until('/readyz', notReady),
      /^database unavailable: no answer\nreads: no answer\nwrites: no answer\n/,
    );
    // New connections hang as well, and a request says so within the limits.
    assert.equal((await t.call('GET', '/v1/projects')).status, 503);
    assert.deepEqual([(await t.call('GET', '/livez')).status, proxy.alive], [200, 0]);

    proxy.open();
    assert.equal((await shop.reaches(id, 'succeeded')).state, 'succeeded');
    await until('/readyz', async () => (await t.call('GET', '/readyz')).status === 200);
  });

  test('connections that fell silent while they were idle cost one statement, not one each', async () => {
    const { db, close } = await openStore(t.app.config, () => {});
    const ask = () => sql`select pg_sleep(0.05)`.execute(db);
    await Promise.all(Array.from({ length: 10 }, ask));
    proxy.silence();
    proxy.open();
    await assert.rejects(ask, /the server did not answer a statement/);
    for (let i = 0; i < 10; i++) await ask();
    await close();
  });

  test('a process that only listens notices that nothing can arrive any more', async () => {
    const { db, close } = await openStore(t.app.config, () => {});
    let connects = 0;
    subscribe(db, 'routing', (signals) => {
      if (signals.length === 0) connects++;
    });
    const { log, loops, config } = t.app;
    const listening = connectProcesses({ db, databaseUrl: config.databaseUrl!, processId: 'listens', log, loops });
    await until('the connection', () => connects === 1);
    proxy.silence();
    proxy.open();
    await until('another connection', () => connects === 2);
    await listening.stop();
    await close();
  });
});

test('a service stops in order while its database is silent', async () => {
  const server = await startPostgres();
  const database = new URL((await createDatabase(server.url)).url);
  const proxy = await startTcpProxy(Number(database.port));
  database.port = String(proxy.port);
  const { env, clean } = await isolatedEnv();
  const service = startService({ ...env, SLUICE_DATABASE_URL: database.href + limits });
  const shop = await Shop.open(await service.url);
  await shop.deploy('registry.example/shop:1');
  proxy.silence();
  service.child.kill('SIGTERM');
  assert.deepEqual(await service.exited, [0, null]);
  await proxy.close();
  await server.stop();
  await clean();
});
