// A router that cannot reach the database while a deployment goes on elsewhere: the instances that it sends requests to
// stay until it has moved, or until its lease has ended.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { startApp, type TestApp } from '../helpers/app.ts';
import { type Cuttable, openCuttable } from '../helpers/cuttable.ts';
import { startPostgres, type TestPostgres } from '../helpers/postgres.ts';
import { ask } from '../helpers/router.ts';
import { startLoad } from '../helpers/router-control.ts';
import { Shop } from '../helpers/shop.ts';
import { until } from '../helpers/wait.ts';

const leaseS = 8;

let postgres: TestPostgres;
let way: Cuttable;
let main: TestApp;
let far: TestApp;
before(async () => {
  postgres = await startPostgres();
  const url = new URL(postgres.url);
  way = await openCuttable({ host: url.hostname, port: Number(url.port) });
  const secret = { SLUICE_SECRET_KEY: Buffer.alloc(32, 3).toString('base64'), SLUICE_ROUTER_LEASE_S: String(leaseS) };
  main = await startApp({ tokenLimit: 1_000_000, env: { ...secret, SLUICE_DATABASE_URL: url.href } });
  url.port = String(way.port);
  far = await startApp({ env: { ...secret, SLUICE_DATABASE_URL: url.href, SLUICE_ROLES: 'router' } });
});
after(async () => {
  way.mend();
  await far.stop();
  await main.stop();
  way.close();
  await postgres.stop();
});

test('it goes on with what it knows, and nothing that it uses is stopped before it knows better or is given up', async () => {
  const { db } = main.app.store;
  const shop = await Shop.open(main.url, { replicas: 1 });
  const portOf = (url: string) => Number(new URL(url.replace('*', 'x')).port);
  const farPort = portOf(far.app.routerUrl!);
  const host = shop.host.split(':')[0]!;
  const visit = () => ask(farPort, { host });
  const imageThere = async () => {
    const { status, body } = await visit();
    return status === 200 ? JSON.parse(body).image : null;
  };
  const draining = () => db.selectFrom('instance').select('id').where('state', '=', 'draining').execute();
  const isStopped = async () => (await draining()).length === 0;

  await shop.released('registry.example/shop:1');
  await until('it knows the first', async () => (await imageThere()) === 'registry.example/shop:1');
  const load = startLoad(2, visit);
  way.cut();
  const { id } = await shop.deploy('registry.example/shop:2');
  await until('the first drains', async () => (await draining()).length === 1);
  const looksUntil = Date.now() + 3000;
  await until('some looks have passed', async () => {
    assert.equal((await draining()).length, 1, 'it waits for the router that does not know');
    return Date.now() > looksUntil;
  });
  assert.equal(await imageThere(), 'registry.example/shop:1');
  way.mend();
  await until('it knows the second', async () => (await imageThere()) === 'registry.example/shop:2');
  await shop.reaches(id, 'succeeded');
  await until('the first is stopped', isStopped);
  await load.stop();
  assert.deepEqual(load.failed, []);

  way.cut();
  const cutAt = Date.now();
  await shop.released('registry.example/shop:3');
  await until('the second is stopped all the same', isStopped, 60_000);
  assert.ok(Date.now() - cutAt >= leaseS * 1000 - 2000, `${Date.now() - cutAt} ms`);
  way.mend();
  await until('it knows the third', async () => (await imageThere()) === 'registry.example/shop:3');
});
