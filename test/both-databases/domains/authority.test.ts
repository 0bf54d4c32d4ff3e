// What an authority asks of its clients: when to renew, when to wait, and one order only, however many processes.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { after, before, describe, test } from 'node:test';
import { type App, createApp } from '../../../src/app.ts';
import { readConfig } from '../../../src/config.ts';
import { AcmeAccount, createTransport } from '../../../src/domains/acme-session.ts';
import { isolatedEnv, onPostgres, startApp, type TestApp } from '../../helpers/app.ts';
import { freePort } from '../../helpers/free-port.ts';
import { isActive, Names } from '../../helpers/names.ts';
import { type Pebble, pebbleMissing, startPebble } from '../../helpers/pebble.ts';
import { Shop } from '../../helpers/shop.ts';
import { until } from '../../helpers/wait.ts';

const hourMs = 3600_000;

/** A directory with more in it than the real server's, which answers everything else itself. */
async function startDirectory(
  pebble: Pebble,
  more: (base: string) => object,
  answer: (incoming: IncomingMessage, response: ServerResponse) => void,
) {
  const server = createServer(pebble.own, async (incoming, response) => {
    incoming.resume();
    if (incoming.url !== '/dir') return answer(incoming, response);
    const real = await pebble.directoryDocument();
    response.setHeader('content-type', 'application/json').end(JSON.stringify({ ...real, ...more(base) }));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const base = `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return { url: `${base}/dir`, close: () => server.close().closeAllConnections() };
}

describe('an authority', { skip: pebbleMissing }, () => {
  let aheadMs = 0;
  let pebble: Pebble;
  let port: number;
  const clock = { now: () => Date.now() + aheadMs };
  const undo: (() => unknown)[] = [];

  before(async () => {
    port = await freePort();
    pebble = await startPebble({ httpPort: port, validityS: (90 * 24 * hourMs) / 1000 });
    undo.push(() => pebble.stop());
  });
  after(async () => {
    for (const step of undo.reverse()) await step();
  });

  async function start(directory: string): Promise<{ t: TestApp; names: Names }> {
    const env = {
      SLUICE_ROUTER_PORT: String(port),
      SLUICE_ACME_DIRECTORY: directory,
      SLUICE_ACME_CA_FILE: pebble.caFile,
    };
    const t = await startApp({ tokenLimit: 1_000_000, clock, lookup: pebble.lookup, env });
    return { t, names: new Names(t.url, (await Shop.open(t.url)).project) };
  }

  test('with renewal information (ARI): certificates are renewed within its window', async () => {
    const asked: string[] = [];
    let window = { start: clock.now() + 80 * 24 * hourMs, end: clock.now() + 81 * 24 * hourMs };
    const directory = await startDirectory(
      pebble,
      (base) => ({ renewalInfo: `${base}/renewal-info` }),
      (incoming, response) => {
        asked.push(incoming.url!);
        const suggestedWindow = {
          start: new Date(window.start).toISOString(),
          end: new Date(window.end).toISOString(),
        };
        response.writeHead(200, { 'content-type': 'application/json', 'retry-after': '21600' });
        response.end(JSON.stringify({ suggestedWindow }));
      },
    );
    const { t, names } = await start(directory.url);
    try {
      const { id, certificate } = await names.active('advised.example');
      assert.equal(asked.length, 0);
      aheadMs += 7 * hourMs;
      await until('it to be asked', () => (asked.length > 0 ? true : undefined));
      assert.match(asked[0]!, /^\/renewal-info\/[\w-]+\.[\w-]+$/);
      const [, serial] = asked[0]!.split('.');
      assert.equal(Buffer.from(serial!, 'base64url').toString('hex').replace(/^00/, ''), certificate!.serial);
      // A window after two thirds of the life changes nothing.
      const later = await names.becomes(id, (domain) => domain.certificate !== null);
      assert.equal(later.certificate!.renew_at, certificate!.renew_at);
      window = { start: clock.now() + hourMs, end: clock.now() + 2 * hourMs };
      aheadMs += 7 * hourMs;
      const renewed = await names.becomes(id, (domain) => domain.certificate!.serial !== certificate!.serial);
      assert.equal((await names.renewals('advised.example')).length, 1);
      assert.ok(Date.parse(renewed.certificate!.renew_at) > clock.now() + 24 * hourMs);
      assert.equal(asked.length, 2);
    } finally {
      await t.stop();
      directory.close();
    }
  });

  test('that knows the account key returns the same account', async () => {
    const { t } = await start(pebble.directory);
    const transport = createTransport({ ca: pebble.own.cert, clock, userAgent: 'test' });
    try {
      const { db, seal } = t.app.store;
      const urlOf = async () => {
        const parts = { db, seal, directory: pebble.directory, email: null, transport };
        return (await new AcmeAccount(parts).session()).client.getAccountUrl();
      };
      const url = await urlOf();
      await db.updateTable('acme_account').set({ url: null }).execute();
      assert.equal(await urlOf(), url);
      assert.equal((await db.selectFrom('acme_account').select('url').executeTakeFirstOrThrow()).url, url);
    } finally {
      await transport.close();
      await t.stop();
    }
  });

  test('that answers "too many requests" is not asked again before the time it names, even on verify or renew', async () => {
    let orders = 0;
    const directory = await startDirectory(
      pebble,
      (base) => ({ newOrder: `${base}/new-order` }),
      (_incoming, response) => {
        orders++;
        response.writeHead(429, { 'content-type': 'application/problem+json', 'retry-after': '7200' });
        response.end(JSON.stringify({ type: 'urn:ietf:params:acme:error:rateLimited', detail: 'too many orders' }));
      },
    );
    const { t, names } = await start(directory.url);
    try {
      const { id } = await names.add('limited.example');
      const failed = await names.becomes(id, ({ state }) => state === 'failed');
      assert.match(failed.last_error!, /too many orders/);
      const waitsMs = Date.parse(failed.next_attempt_at!) - clock.now();
      assert.ok(waitsMs > 1.9 * hourMs && waitsMs <= 2 * hourMs, String(waitsMs));
      for (const what of ['verify', 'renew']) assert.ok((await names.api('POST', `/${id}/${what}`)).status < 300);
      // The issuer has looked again once another name has failed too.
      const other = await names.add('other.example');
      await names.becomes(other.id, ({ state }) => state === 'failed');
      assert.equal(orders, 2, 'one for each name');
      aheadMs += 2 * hourMs + 1000;
      await until('it to be asked again', () => (orders > 2 ? true : undefined));
    } finally {
      await t.stop();
      directory.close();
    }
  });

  if (onPostgres) {
    test('is given one order for each name by two processes, and either answers its challenges', async () => {
      const isolated = await isolatedEnv();
      const settings = { SLUICE_ACME_DIRECTORY: pebble.directory, SLUICE_ACME_CA_FILE: pebble.caFile };
      const run = (routerPort: number): Promise<App> => {
        const env = { ...isolated.env, ...settings, SLUICE_ROUTER_PORT: String(routerPort) };
        return createApp(readConfig(env, false), { tokenLimit: 1_000_000, lookup: pebble.lookup });
      };
      const apps = [await run(port), await run(0)];
      try {
        const before = pebble.orders();
        const shop = await Shop.open(apps[0]!.apiUrl());
        const both = apps.map((app) => new Names(app.apiUrl(), shop.project));
        const added = await Promise.all(Array.from({ length: 12 }, (_, n) => both[n % 2]!.add(`shared-${n}.example`)));
        for (const { id } of added) await both[0]!.becomes(id, isActive, 60_000);
        assert.equal(pebble.orders() - before, 12);
        const accounts = await apps[0]!.store.db.selectFrom('acme_account').selectAll().execute();
        assert.equal(accounts.length, 1);
        for (const { id } of added) await both[1]!.api('POST', `/${id}/renew`);
        await until(
          'all renewals',
          async () => {
            const { body } = await both[0]!.events();
            return body.data.length >= 12 ? true : undefined;
          },
          60_000,
        );
        assert.equal((await both[0]!.events()).body.data.length, 12);
        assert.equal(pebble.orders() - before, 24);
      } finally {
        for (const app of apps) await app.stop();
        await isolated.clean();
      }
    });
  }
});
