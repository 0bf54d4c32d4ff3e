// Two processes on one PostgreSQL, of which one is killed while it carries out deployments and sends deliveries.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import pg from 'pg';
import { call, isolatedEnv } from '../helpers/app.ts';
import { createDatabase, startPostgres, type TestPostgres } from '../helpers/postgres.ts';
import { Receiver } from '../helpers/receiver.ts';
import { startTwoServices } from '../helpers/service.ts';
import { Shop } from '../helpers/shop.ts';
import { until } from '../helpers/wait.ts';

let server: TestPostgres;
let receiver: Receiver;
let isolated: Awaited<ReturnType<typeof isolatedEnv>>;
let database: pg.Client;
before(async () => {
  server = await startPostgres();
  // Slow, so that requests are in flight when the sender dies.
  receiver = await Receiver.open((_arrival, response) => void setTimeout(() => response.writeHead(200).end(), 400));
  isolated = await isolatedEnv();
});
after(async () => {
  await database?.end();
  await server?.stop();
  await receiver?.close();
  await isolated?.clean();
});

test('kill -9 of one: the other finishes its deployments and its deliveries', async () => {
  const { url: databaseUrl } = await createDatabase(server.url);
  database = new pg.Client({ connectionString: databaseUrl });
  await database.connect();
  const [killed, survivor] = startTwoServices({ ...isolated.env, SLUICE_DATABASE_URL: databaseUrl });
  const urls = [await killed.url, await survivor.url];
  await call(urls[1]!, 'POST', '/v1/webhooks', { body: { url: receiver.url, events: ['*'] } });
  // While the survivor stands still, all the work is the other's.
  process.kill(-survivor.child.pid!, 'SIGSTOP');
  const shops = await Promise.all(Array.from({ length: 6 }, () => Shop.open(urls[0]!)));
  const created = await Promise.all(shops.map((shop) => shop.deploy('registry.example/shop:1')));
  const count = async (text: string) => Number((await database.query(text)).rows[0].count);
  await until('it at work, with deliveries in flight', async () => {
    const environments = await count('select count(*) from environment_lease');
    const deliveries = await count('select count(*) from delivery where lease is not null');
    return environments > 0 && deliveries > 0;
  });
  killed.killAll();
  process.kill(-survivor.child.pid!, 'SIGCONT');
  assert.deepEqual(await killed.exited, [null, 'SIGKILL']);
  assert.ok((await count('select count(*) from deployment where finished_at is null')) > 0, 'killed too late');

  for (const [i, shop] of shops.entries()) {
    const there = await Shop.at(urls[1]!, shop.project);
    there.pollMs = 500;
    await there.reaches(created[i]!.id, 'succeeded');
    await until('an answer', async () => (await there.visit()).status === 200);
  }
  const { rows } = await database.query<{ id: string }>('select id from event');
  const missing = () => {
    const arrived = new Set(receiver.arrivals.map(({ event }) => event.id));
    return rows.filter(({ id }) => !arrived.has(id));
  };
  await until('every delivery', () => missing().length === 0, 60_000);
  const pending = "select count(*) from delivery where state = 'pending'";
  await until('every outcome', async () => (await count(pending)) === 0, 60_000);
  assert.equal((await call(urls[1]!, 'GET', '/livez')).status, 200);
  survivor.child.kill('SIGTERM');
  assert.deepEqual(await survivor.exited, [0, null]);
});
