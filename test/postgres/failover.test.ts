// Two processes on a PostgreSQL with a standby, both addresses in the database URL. The primary loses power, the standby
// is promoted, and nothing else is done.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { sql } from 'kysely';
import pg from 'pg';
import { readConfig } from '../../src/config.ts';
import { isUnavailable } from '../../src/db/database-errors.ts';
import { openStore } from '../../src/store.ts';
import { call, isolatedEnv } from '../helpers/app.ts';
import { createDatabase, startPostgres, type TestPostgres, type TestStandby } from '../helpers/postgres.ts';
import { Receiver } from '../helpers/receiver.ts';
import { type Service, startTwoServices } from '../helpers/service.ts';
import { Shop } from '../helpers/shop.ts';
import { until } from '../helpers/wait.ts';

let primary: TestPostgres;
let standby: TestStandby;
let receiver: Receiver;
let isolated: Awaited<ReturnType<typeof isolatedEnv>>;
before(async () => {
  primary = await startPostgres();
  standby = await primary.startStandby();
  receiver = await Receiver.open();
  isolated = await isolatedEnv();
});
after(async () => {
  await standby?.stop();
  await primary?.stop();
  await receiver?.close();
  await isolated?.clean();
});

/** Creates projects until it is stopped: those that were acknowledged, and how many were refused. */
function keepCreating(url: string) {
  let stopped = false;
  const acknowledged: string[] = [];
  let refused = 0;
  const running = (async () => {
    for (let n = 0; !stopped; n++) {
      const { status, body } = await call(url, 'POST', '/v1/projects', { body: { name: `Project ${n}` } });
      if (status === 201) acknowledged.push(body.id);
      else {
        assert.equal(status, 503, JSON.stringify(body));
        refused++;
      }
      await new Promise((resolve) => setTimeout(resolve, 200));
    }
  })();
  return {
    acknowledged,
    refused: () => refused,
    async stop() {
      stopped = true;
      await running;
    },
  };
}

const startTwo = (url: string): Service[] =>
  startTwoServices({ ...isolated.env, SLUICE_DATABASE_URL: url, SLUICE_LOG_LEVEL: 'warn' });

const ask = async <R>(url: string, text: string): Promise<R[]> => {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  const { rows } = await client.query(text);
  await client.end();
  return rows;
};

test('a failover: what was acknowledged is there, both go on by themselves, no event and no delivery is missing', async () => {
  const database = await createDatabase(primary.url);
  const { pathname, host: first } = new URL(database.url);
  const second = new URL(standby.url).host;
  const services = startTwo(`postgres://postgres@${second},${first}${pathname}?target_session_attrs=read-write`);
  const urls = await Promise.all(services.map(({ url }) => url));
  await call(urls[0]!, 'POST', '/v1/webhooks', { body: { url: receiver.url, events: ['*'] } });
  const shops = await Promise.all(urls.map((url) => Shop.open(url)));
  for (const shop of shops) shop.pollMs = 500;
  await Promise.all(shops.map((shop) => shop.released('registry.example/shop:1')));
  const writers = urls.map(keepCreating);
  await until('some writes', () => writers.every(({ acknowledged }) => acknowledged.length > 3));
  const deployments = await Promise.all(shops.map((shop) => shop.deploy('registry.example/shop:2')));

  await primary.crash();
  await until('/readyz', async () => (await call(urls[0]!, 'GET', '/readyz')).status === 503);
  await until('somebody to notice the failover', () => writers.some((one) => one.refused() > 0), 30_000);
  const before = writers.map(({ acknowledged }) => acknowledged.length);
  await standby.promote();
  await until('writes through both', () => writers.every((one, i) => one.acknowledged.length > before[i]! + 3), 30_000);
  await Promise.all(writers.map((one) => one.stop()));
  await until('both ready', async () => {
    const ready = await Promise.all(urls.map((url) => call(url, 'GET', '/readyz')));
    return ready.every(({ status }) => status === 200);
  });
  const done = await Promise.all(
    shops.map((shop, i) =>
      until(
        'the end',
        async () => {
          const { status, body } = await shop.api('GET', `/deployments/${deployments[i]!.id}`);
          return status === 200 && body.finished_at && body.state;
        },
        60_000,
        500,
      ),
    ),
  );
  assert.deepEqual(done, ['succeeded', 'succeeded']);

  const there = new URL(standby.url);
  there.pathname = pathname;
  const projects = new Set((await ask<{ id: string }>(there.href, 'select id from project')).map(({ id }) => id));
  for (const { acknowledged } of writers) for (const id of acknowledged) assert.ok(projects.has(id), `${id} is lost`);
  const events = await ask<{ id: string; project_id: string; sequence: string }>(
    there.href,
    'select id, project_id, sequence from event order by project_id, sequence',
  );
  for (const of of Map.groupBy(events, ({ project_id }) => project_id).values()) {
    assert.deepEqual(
      of.map(({ sequence }) => Number(sequence)),
      of.map((_, i) => i + 1),
    );
  }
  const missing = () => {
    const arrived = new Set(receiver.arrivals.map(({ event }) => event.id));
    return events.filter(({ id }) => !arrived.has(id));
  };
  await until('every delivery', () => missing().length === 0, 60_000);

  for (const { child } of services) child.kill('SIGTERM');
  assert.deepEqual(await Promise.all(services.map(({ exited }) => exited)), [
    [0, null],
    [0, null],
  ]);
});

test('a connection that turned read-only is dropped: one write fails as retryable, the next one succeeds', async () => {
  const server = await startPostgres();
  const { url } = await createDatabase(server.url);
  const store = await openStore(readConfig({ ...isolated.env, SLUICE_DATABASE_URL: url }, false), () => {});
  const write = () => store.db.insertInto('meta').values({ name: 'written', value: 'x' }).execute();
  await sql`set default_transaction_read_only = on`.execute(store.db);
  await assert.rejects(write, (error) => isUnavailable(error));
  await write();
  await store.close();
  await server.stop();
});
