// The ports of instances: given to one at a time, and to nobody for a while after that.
import assert from 'node:assert/strict';
import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { describe, test } from 'node:test';
import { type App, createApp } from '../../../src/app.ts';
import { readConfig } from '../../../src/config.ts';
import { exchangePort, freePorts, quarantineMs, takePorts } from '../../../src/deployments/ports.ts';
import { RouterWatch } from '../../../src/traffic/router-watch.ts';
import { markRoutingChanged } from '../../../src/traffic/traffic-queries.ts';
import { isolatedEnv, onPostgres } from '../../helpers/app.ts';
import { sharedApp } from '../../helpers/shared-app.ts';
import { Shop } from '../../helpers/shop.ts';
import { image, instancesOf } from './deployments-fixture.ts';

/** Neither routes nor reconciles: that would free ports in between. */
const t = sharedApp({ env: { SLUICE_ROLES: 'api' } });
const range = { first: 20_000, last: 20_003 };
const three = ['ins_a', 'ins_b', 'ins_c'];

describe('ports', () => {
  const db = () => t.app.store.db;
  const take = (host: string, instances: string[]) =>
    db()
      .transaction()
      .execute((tx) => takePorts(tx, { hosts: [host], range }, instances));
  const ofHost = (host: string) =>
    db().selectFrom('instance_port').selectAll().where('host', '=', host).orderBy('port').execute();

  /** As the reconciler does. */
  function routers() {
    const watch = new RouterWatch({ db: db(), clock: { now: () => Date.now() }, leaseMs: 600_000 });
    return { free: () => freePorts(db(), watch, Date.now()) };
  }

  /** As if the quarantine were over. */
  const wait = (host: string) =>
    db()
      .updateTable('instance_port')
      .set((e) => ({ freed_at: e('freed_at', '-', quarantineMs + 1000) }))
      .where('host', '=', host)
      .execute();

  test('of instances that are gone are given to nobody until every router has moved and minutes have passed', async () => {
    const host = '192.0.2.1';
    const { free } = routers();
    const first = await take(host, three);
    assert.equal(new Set(first).size, 3);
    // A router that has seen everything so far, and does not hear of the next change.
    const key = { projectId: 'prj_ports', environment: 'production' };
    const seen = await db()
      .transaction()
      .execute((tx) => markRoutingChanged(tx, key));
    const behind = { id: 'behind', version: seen, beat: 1 };
    await db().insertInto('router').values(behind).execute();
    const gone = await db()
      .transaction()
      .execute((tx) => markRoutingChanged(tx, key));
    await free();
    assert.ok((await ofHost(host)).every(({ freed_at, freed_version }) => freed_at && freed_version >= gone));

    const fourth = await take(host, ['ins_d']);
    assert.ok(!first.includes(fourth[0]!), 'the one that is left');
    assert.deepEqual(await take(host, ['ins_e']), [], 'none is left');

    await wait(host);
    await free();
    assert.deepEqual(await take(host, ['ins_e']), [], 'one router may still send requests to them');

    const version = Number.MAX_SAFE_INTEGER;
    await db().updateTable('router').set({ version }).where('id', '=', behind.id).execute();
    await free();
    assert.deepEqual((await take(host, ['ins_e', 'ins_f', 'ins_g'])).toSorted(), first.toSorted());
  });

  test('the minutes count from when the instance was gone, however far the routers are', async () => {
    const host = '192.0.2.2';
    const { free } = routers();
    await take(host, three);
    await free();
    await free();
    assert.equal((await ofHost(host)).length, 3);
    assert.equal((await take(host, [...three, 'ins_d'])).length, 1);
  });

  test('at the same time: none is given twice', async () => {
    const host = '192.0.2.3';
    const wide = { first: 20_000, last: 20_099 };
    const takeOf = (n: number) =>
      db()
        .transaction()
        .execute((tx) => takePorts(tx, { hosts: [host], range: wide }, [`ins_${n}`, `ins_${n}x`]));
    const all = await Promise.all(Array.from({ length: 20 }, (_, n) => takeOf(n)));
    assert.equal(new Set(all.flat()).size, 40);
  });

  test('an instance of several hosts has a port that is free on all of them, and gives all of them back', async () => {
    const hosts = ['192.0.2.6', '192.0.2.5'];
    const takeOnBoth = (instances: string[]) =>
      db()
        .transaction()
        .execute((tx) => takePorts(tx, { hosts, range }, instances));
    const [alone] = await take(hosts[0]!, ['ins_alone']);
    const [other] = await take(hosts[1]!, ['ins_other']);
    const both = await takeOnBoth(['ins_both', 'ins_both_too', 'ins_both_three', 'ins_both_four']);
    assert.equal(both.length, 4 - new Set([alone, other]).size);
    assert.ok(!both.includes(alone!) && !both.includes(other!));
    for (const host of hosts) {
      const ports = (await ofHost(host)).map(({ port, instance_id }) => [Number(port), instance_id]);
      assert.ok(
        ports.some(([port, instance]) => port === both[0] && instance === 'ins_both'),
        host,
      );
      assert.deepEqual(
        await take(host, ['ins_late', 'ins_later', 'ins_latest']).then((late) => late.length),
        4 - 1 - both.length,
      );
    }
    const exchange = () =>
      db()
        .transaction()
        .execute((tx) => exchangePort(tx, { hosts, range }, 'ins_both', both[0]!, Date.now()));
    assert.equal(await exchange(), null, 'none is free on both');
    await routers().free();
    for (const host of hosts) assert.ok((await ofHost(host)).every(({ freed_at }) => freed_at !== null));
  });

  test('two who take ports of the same hosts, in whichever order they name them, do not wait for each other for ever', async () => {
    const [one, two] = ['192.0.2.7', '192.0.2.8'];
    const wide = { first: 20_000, last: 20_099 };
    const takeOf = (n: number) =>
      db()
        .transaction()
        .execute((tx) => takePorts(tx, { hosts: n % 2 ? [one, two] : [two, one], range: wide }, [`ins_${n}`]));
    const all = await Promise.all(Array.from({ length: 20 }, (_, n) => takeOf(n)));
    assert.equal(new Set(all.flat()).size, 20);
  });

  test('one that something else has is exchanged', async () => {
    const host = '192.0.2.4';
    const [refused] = await take(host, ['ins_a']);
    const exchange = () =>
      db()
        .transaction()
        .execute((tx) => exchangePort(tx, { hosts: [host], range }, 'ins_a', refused!, Date.now()));
    const other = await exchange();
    assert.ok(other !== null && other !== refused);
    const rows = await ofHost(host);
    assert.notEqual(rows.find(({ port }) => port === refused)?.freed_at, null);
    assert.equal(rows.find(({ port }) => port === other)?.freed_at, null);
  });
});

/** A foreign program that listens on this many ports in a row. */
async function occupyPorts(count: number): Promise<{ first: number; close(): void }> {
  const first = randomInt(10_000, 19_000);
  const servers = Array.from({ length: count }, (_, i) => createServer().listen(first + i, '127.0.0.1'));
  const close = () => {
    for (const server of servers) server.close();
  };
  try {
    await Promise.all(servers.map((server) => once(server, 'listening')));
    return { first, close };
  } catch {
    close();
    return occupyPorts(count);
  }
}

test('an instance whose port a foreign program has gets another: that is no crash', async () => {
  const isolated = await isolatedEnv();
  const occupied = 4;
  const foreign = await occupyPorts(occupied);
  const range = { first: foreign.first, last: foreign.first + 99 };
  let app: App | null = null;
  try {
    const env = { ...isolated.env, SLUICE_INSTANCE_PORTS: `${range.first}-${range.last}` };
    app = await createApp(readConfig(env, false), { tokenLimit: 1_000_000, standinInProcess: true });
    await app.store.db
      .insertInto('meta')
      .values({ name: 'instance_port 127.0.0.1', value: String(range.last) })
      .execute();
    const shop = await Shop.open(app.apiUrl(), { replicas: 3 });
    const { timeline } = await shop.released(image(1));
    assert.ok(
      timeline.every(({ message }) => !/could not be started|ended/.test(message)),
      JSON.stringify(timeline),
    );
    const ports = (await instancesOf(app.store.db, shop)).map(({ port }) => port!);
    assert.equal(new Set(ports).size, 3);
    for (const port of ports) assert.ok(range.first + occupied <= port && port <= range.last, `${port}`);
  } finally {
    await app?.stop();
    foreign.close();
    await isolated.clean();
  }
});

if (onPostgres) {
  test('two processes that start instances at once give no port twice', async () => {
    const isolated = await isolatedEnv();
    const start = () => createApp(readConfig(isolated.env, false), { tokenLimit: 1_000_000, standinInProcess: true });
    const [one, two] = [await start(), await start()];
    try {
      const shops = await Promise.all(
        Array.from({ length: 8 }, (_, i) => Shop.open(i % 2 ? one.apiUrl() : two.apiUrl(), { replicas: 2 })),
      );
      await Promise.all(shops.map((shop) => shop.released(image(1))));
      const rows = await one.store.db.selectFrom('instance').select(['host', 'port']).execute();
      assert.equal(new Set(rows.map(({ host, port }) => `${host}:${port}`)).size, 16);
    } finally {
      await two.stop();
      await one.stop();
      await isolated.clean();
    }
  });
}
