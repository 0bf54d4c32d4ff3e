// Certificates from a real ACME server that rejects half of its own nonces.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';
import { after, before, describe, test } from 'node:test';
import { call, isolatedEnv, startApp, type TestApp } from '../../helpers/app.ts';
import { freePort } from '../../helpers/free-port.ts';
import { isActive, Names } from '../../helpers/names.ts';
import { type Pebble, pebbleMissing, startPebble } from '../../helpers/pebble.ts';
import { startService } from '../../helpers/service.ts';
import { Shop } from '../../helpers/shop.ts';
import { handshake, type TlsVisitor, tlsLoad, visitPlain, visitTls } from '../../helpers/tls-visit.ts';
import { until } from '../../helpers/wait.ts';

const dayMs = 24 * 3600_000;
const minuteMs = 60_000;
describe('with an ACME server', { skip: pebbleMissing }, () => {
  let aheadMs = 0;
  let pebble: Pebble;
  let t: TestApp;
  let shop: Shop;
  let names: Names;
  let plainPort: number;
  const visitor = async (): Promise<TlsVisitor> => ({ port: t.app.routerTlsPort!, root: await pebble.root() });

  before(async () => {
    plainPort = await freePort();
    pebble = await startPebble({ httpPort: plainPort, validityS: (90 * dayMs) / 1000 });
    const env = {
      SLUICE_ROUTER_PORT: String(plainPort),
      SLUICE_ACME_DIRECTORY: pebble.directory,
      SLUICE_ACME_EMAIL: 'ops@example.com',
      SLUICE_ACME_CA_FILE: pebble.caFile,
    };
    const clock = { now: () => Date.now() + aheadMs };
    t = await startApp({ tokenLimit: 1_000_000, clock, lookup: pebble.lookup, env });
    shop = await Shop.open(t.url);
    await shop.released('registry.example/shop:1');
    names = new Names(t.url, shop.project);
  });
  after(async () => {
    await t.stop();
    await pebble.stop();
  });

  test('from POST to a handshake that clients accept', async () => {
    const { certificate, last_error } = await names.active('first.example');
    assert.equal(last_error, null);
    assert.match(certificate!.issuer, /Pebble/);
    const shown = await handshake(await visitor(), 'first.example');
    assert.equal(shown.serialNumber.toLowerCase(), certificate!.serial);
    const { db } = t.app.store;
    assert.deepEqual(await db.selectFrom('acme_challenge').selectAll().execute(), []);
    const [account, ...others] = await db.selectFrom('acme_account').selectAll().execute();
    assert.deepEqual(others, []);
    assert.ok(!account!.key_sealed.includes('PRIVATE'));
    const row = await db
      .selectFrom('domain')
      .selectAll()
      .where('hostname', '=', 'first.example')
      .executeTakeFirstOrThrow();
    assert.deepEqual([row.order_url, row.order_key_sealed, row.lease_owner], [null, null, null]);
  });

  test('eight at once, one order each', async () => {
    const before = pebble.orders();
    const all = await Promise.all(Array.from({ length: 8 }, (_, n) => names.active(`many-${n}.example`)));
    assert.equal(new Set(all.map(({ certificate }) => certificate!.serial)).size, 8);
    assert.equal(pebble.orders() - before, 8);
  });

  test('there is no local root; an unknown challenge has no answer', async () => {
    assert.equal((await fetch(`${t.url}/local-ca.pem`)).status, 404);
    const { status } = await visitPlain(plainPort, 'first.example', '/.well-known/acme-challenge/nothing');
    assert.notEqual(status, 200);
  });

  test('a name that resolves elsewhere fails with the reason, and recovers through verify', async () => {
    await pebble.point('elsewhere.example', '127.0.0.2');
    const { id } = await names.add('elsewhere.example');
    const failed = await names.becomes(id, ({ state }) => state === 'failed');
    assert.match(failed.last_error!, /127\.0\.0\.2/);
    assert.equal(failed.certificate, null);
    const waits = Date.parse(failed.next_attempt_at!) - Date.now();
    assert.ok(waits > 0 && waits < 2 * minuteMs, String(waits));

    await pebble.point('elsewhere.example', null);
    const refused = await names.api('POST', `/${id}/verify`);
    assert.deepEqual([refused.status, refused.body.error.code], [422, 'domain_not_pointed']);
    assert.match(refused.body.error.details[0].message, /DNS|record/);

    await pebble.point('elsewhere.example', '127.0.0.1');
    const verified = await names.api('POST', `/${id}/verify`);
    assert.equal(verified.status, 200, JSON.stringify(verified.body));
    const { last_error } = await names.becomes(id, isActive);
    assert.equal(last_error, null);
    await handshake(await visitor(), 'elsewhere.example');
    assert.deepEqual(await names.renewals('elsewhere.example'), []);
  });

  test('a failed order is tried again without a request', async () => {
    await pebble.point('later.example', '127.0.0.2');
    const { id } = await names.add('later.example');
    await names.becomes(id, ({ state }) => state === 'failed');
    await pebble.point('later.example', '127.0.0.1');
    aheadMs += 2 * minuteMs;
    await names.becomes(id, isActive);
  });

  test('renewed near its end under load: no failed request, one event', async () => {
    const { id, certificate } = await names.active('loaded.example');
    const seen = await visitor();
    await until('the route', async () => ((await visitTls(seen, 'loaded.example')).status === 200 ? true : undefined));
    const load = tlsLoad(seen, 'loaded.example');
    await until('some visits', () => (load.visits() > 20 ? true : undefined));
    aheadMs += 61 * dayMs;
    const renewed = await names.becomes(id, (domain) => domain.certificate!.serial !== certificate!.serial, 60_000);
    await until('visitors to be shown it', () => (load.serials.has(renewed.certificate!.serial) ? true : undefined));
    const { failed } = await load.stop();
    aheadMs -= 61 * dayMs;
    assert.deepEqual(failed, []);
    assert.deepEqual(await names.renewals('loaded.example'), [renewed]);
  });

  test('the authority is away for a while: the old one serves; renewed when it is back', async () => {
    const { id, certificate } = await names.active('patient.example');
    const old = await visitor();
    await pebble.kill();
    assert.equal((await names.api('POST', `/${id}/renew`)).status, 202);
    const failing = await names.becomes(id, ({ last_error }) => last_error !== null);
    assert.equal(failing.state, 'active');
    assert.match(failing.last_error!, /does not answer/);
    assert.notEqual(failing.next_attempt_at, null);
    assert.equal((await handshake(old, 'patient.example')).serialNumber.toLowerCase(), certificate!.serial);
    // It comes back without its memory: the account is registered anew.
    await pebble.start();
    aheadMs += 2 * minuteMs;
    const renewed = await names.becomes(id, (domain) => domain.certificate!.serial !== certificate!.serial);
    assert.equal(renewed.last_error, null);
    assert.equal(
      (await handshake(await visitor(), 'patient.example')).serialNumber.toLowerCase(),
      renewed.certificate!.serial,
    );
    assert.equal((await names.renewals('patient.example')).length, 1);
  });

  test('a domain deleted during its order leaves nothing behind', async () => {
    const { id } = await names.add('gone.example');
    assert.equal((await names.api('DELETE', `/${id}`)).status, 204);
    const { db } = t.app.store;
    await until('the challenge to go', async () => {
      const left = await db.selectFrom('acme_challenge').selectAll().where('hostname', '=', 'gone.example').execute();
      return left.length === 0 ? true : undefined;
    });
    await names.active('gone.example');
  });
});

/**
 * Stands where the authority looks for the answer: asks the service for it once, and gives it when it is told to, however
 * often the authority asks.
 */
async function holdChallenges(port: number) {
  const answered = Promise.withResolvers<string>();
  const go = Promise.withResolvers<void>();
  const server = createServer(async (incoming: IncomingMessage, response: ServerResponse) => {
    const { url: path, headers } = incoming;
    const asked = request({ host: '127.0.0.1', port, path, headers: { host: headers.host }, agent: false });
    asked.on('response', async (answer) => answer.statusCode === 200 && answered.resolve(await text(answer)));
    asked.on('error', () => {}); // killed: another one has the answer
    asked.end();
    await go.promise;
    response.end(await answered.promise);
  });
  server.listen(port, '127.0.0.2');
  await once(server, 'listening');
  return { answered: answered.promise, go: () => go.resolve(), close: () => server.close().closeAllConnections() };
}

test('killed in the middle of an order, the service goes on with the same one', { skip: pebbleMissing }, async () => {
  const plainPort = await freePort();
  const pebble = await startPebble({ httpPort: plainPort });
  const isolated = await isolatedEnv();
  const env = {
    ...isolated.env,
    SLUICE_ROUTER_PORT: String(plainPort),
    SLUICE_ACME_DIRECTORY: pebble.directory,
    SLUICE_ACME_CA_FILE: pebble.caFile,
    SLUICE_LOG_LEVEL: 'warn',
  };
  const held = await holdChallenges(plainPort);
  let service = startService(env);
  try {
    await pebble.point('crash.example', '127.0.0.2');
    const url = await service.url;
    const { body: project } = await call(url, 'POST', '/v1/projects', { body: { name: 'Crash' } });
    const { id } = await new Names(url, project.id).add('crash.example');
    await held.answered;
    service.killAll();
    await service.exited;
    held.go(); // before the next start: the authority does not wait for as long as one may take
    service = startService(env);
    const names = new Names(await service.url, project.id);
    await names.becomes(id, isActive, 90_000);
    assert.equal(pebble.orders(), 1, service.output());
  } finally {
    service.killAll();
    await service.exited;
    held.close();
    await pebble.stop();
    await isolated.clean();
  }
});
