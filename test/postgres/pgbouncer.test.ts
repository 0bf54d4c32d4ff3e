// PgBouncer in transaction mode, where a connection has no session of its own: it works once the URL tells of it, and is
// refused where it does not.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { CompiledQuery, sql } from 'kysely';
import { pino } from 'pino';
import { createApp } from '../../src/app.ts';
import { readConfig } from '../../src/config.ts';
import { openDatabase } from '../../src/db/open-database.ts';
import { keepPlan } from '../../src/db/prepared.ts';
import { StartError } from '../../src/lib/start-error.ts';
import { openStore } from '../../src/store.ts';
import { isolatedEnv, startApp } from '../helpers/app.ts';
import { Follower } from '../helpers/follower.ts';
import { type PgBouncer, startPgBouncer } from '../helpers/pgbouncer.ts';
import { createDatabase, startPostgres, type TestPostgres } from '../helpers/postgres.ts';
import { Receiver } from '../helpers/receiver.ts';
import { Shop } from '../helpers/shop.ts';

let server: TestPostgres;
let bouncer: PgBouncer;
before(async () => {
  server = await startPostgres();
  bouncer = await startPgBouncer(server.url, 'transaction');
});
after(async () => {
  await bouncer?.stop();
  await server?.stop();
});

/** Two processes of one installation: a deployment through one, its events and deliveries through either. */
async function tryOut(settings: Record<string, string>): Promise<string[]> {
  const lines: string[] = [];
  const log = pino({ level: 'warn' }, { write: (line) => void lines.push(line) });
  const one = await startApp({ env: settings, log, tokenLimit: 1_000_000 });
  const two = await createApp(readConfig(one.env, false), { log, tokenLimit: 1_000_000 });
  const receiver = await Receiver.open();
  try {
    const follower = await Follower.open(two.apiUrl());
    await one.call('POST', '/v1/webhooks', { body: { url: receiver.url, events: ['*'] } });
    const shop = await Shop.open(one.url);
    const ids = await Promise.all([1, 2, 3].map(() => Shop.open(two.apiUrl())));
    await Promise.all([shop, ...ids].map((each) => each.released('registry.example/shop:1')));
    assert.equal((await shop.visit()).revision, 'r1');
    const { body } = await one.call('GET', '/v1/events?limit=100');
    const written: string[] = body.data.map((event: { id: string }) => event.id).toSorted();
    assert.ok(written.length >= 8);
    assert.deepEqual((await follower.has(written.length)).map(({ id }) => id).toSorted(), written);
    const arrived = (await receiver.has(written.length)).map(({ event }) => event.id);
    assert.deepEqual([...new Set(arrived)].toSorted(), written);
    follower.close();
  } finally {
    await two.stop();
    await one.stop();
    await receiver.close();
  }
  return lines;
}

test('deployments, the event stream and deliveries, with PostgreSQL itself for what needs a session', async () => {
  const { url } = await createDatabase(server.url);
  const pooled = `${bouncer.urlOf(url)}?pgbouncer=true`;
  const lines = await tryOut({ SLUICE_DATABASE_URL: pooled, SLUICE_DATABASE_DIRECT_URL: url });
  assert.deepEqual(lines, []);
});

test('without PostgreSQL itself all of it works too, and a line says what that costs', async () => {
  const { url } = await createDatabase(server.url);
  const lines = await tryOut({ SLUICE_DATABASE_URL: `${bouncer.urlOf(url)}?pgbouncer=true` });
  assert.equal(lines.length, 2);
  for (const line of lines) assert.match(line, /without SLUICE_DATABASE_DIRECT_URL, changes of other processes/);
});

test('a URL that does not tell of it is refused, whatever the PgBouncer ignores', async () => {
  const ignoring = await startPgBouncer(server.url, 'transaction', {
    ignore_startup_parameters: 'statement_timeout,idle_in_transaction_session_timeout,options',
  });
  const { env, clean } = await isolatedEnv();
  const { url } = await createDatabase(server.url);
  for (const through of [bouncer, ignoring]) {
    const config = readConfig({ ...env, SLUICE_DATABASE_URL: through.urlOf(url) }, false);
    await assert.rejects(createApp(config), (error) => {
      assert.ok(error instanceof StartError, String(error));
      assert.match(
        error.lines[0]!,
        /leads to a PgBouncer.*: add pgbouncer=true to it, and set SLUICE_DATABASE_DIRECT_URL/,
      );
      return true;
    });
  }
  const direct = { SLUICE_DATABASE_URL: url, SLUICE_DATABASE_DIRECT_URL: bouncer.urlOf(url) };
  await assert.rejects(createApp(readConfig({ ...env, ...direct }, false)), (error) => {
    assert.match((error as StartError).lines[0]!, /^SLUICE_DATABASE_DIRECT_URL leads to a PgBouncer/);
    return true;
  });
  await clean();
  await ignoring.stop();
});

test('in session mode it needs no telling', async () => {
  const sessions = await startPgBouncer(server.url, 'session', {
    ignore_startup_parameters: 'statement_timeout,idle_in_transaction_session_timeout,options',
  });
  const { env, clean } = await isolatedEnv();
  const { url } = await createDatabase(server.url);
  const store = await openStore(readConfig({ ...env, SLUICE_DATABASE_URL: sessions.urlOf(url) }, false), () => {});
  await store.close();
  await clean();
  await sessions.stop();
});

test('the server keeps plans for a connection, and none for a PgBouncer', async () => {
  const { url } = await createDatabase(server.url);
  const text = keepPlan('select $1::int as kept');
  const countKept = async (through: string) => {
    const { db, close } = await openDatabase({ url: through, dataDir: '', onConnectionLost: () => {} });
    const kept = await db.transaction().execute(async (tx) => {
      for (const value of [1, 2]) {
        const { rows } = await tx.executeQuery(CompiledQuery.raw(text, [value]));
        assert.deepEqual(rows, [{ kept: value }]);
      }
      return sql<{ count: number }>`select count(*) from pg_prepared_statements where statement = ${text}`.execute(tx);
    });
    await close();
    return kept.rows[0]!.count;
  };
  assert.equal(await countKept(url), 1);
  assert.equal(await countKept(`${bouncer.urlOf(url)}?pgbouncer=true`), 0);
});
