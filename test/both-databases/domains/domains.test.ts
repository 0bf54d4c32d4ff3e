// Domains with the local CA: rules, routes, isolation, what visitors are shown, renewal.
import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { describe, test } from 'node:test';
import type { Domain } from '../../../src/contract/domains.ts';
import { subscribe } from '../../../src/signals/signals.ts';
import { call } from '../../helpers/app.ts';
import { isActive, Names } from '../../helpers/names.ts';
import { sharedApp } from '../../helpers/shared-app.ts';
import { Shop } from '../../helpers/shop.ts';
import { handshake, type TlsVisitor, tlsLoad, visitPlain, visitTls } from '../../helpers/tls-visit.ts';
import { until } from '../../helpers/wait.ts';

const dayMs = 24 * 3600_000;
/** Visitors live now and the service earlier, so that its first certificates are old when it catches up with them. */
let behindMs = 61 * dayMs;
const clock = { now: () => Date.now() - behindMs };
let shop: Shop;
let names: Names;
let visitor: TlsVisitor;

const env = { SLUICE_ROUTER_DOMAIN: 'apps.example', SLUICE_API_URL: 'https://api.example.com' };
const t = sharedApp({ tokenLimit: 1_000_000, clock, env }, async () => {
  t.url = `http://127.0.0.1:${(t.app.server.server.address() as { port: number }).port}`;
  shop = await Shop.open(t.url);
  names = new Names(t.url, shop.project);
  const root = await (await fetch(`${t.url}/local-ca.pem`)).text();
  visitor = { port: t.app.routerTlsPort!, root };
});

let count = 0;
const newName = () => `shop-${++count}.example`;
const path = (project: string, rest = '') => `/v1/projects/${project}/domains${rest}`;
const api = (method: string, path: string, options = {}) => call(t.url, method, path, options);
const add = (hostname: string, more: object = {}, project = shop.project) =>
  api('POST', path(project), { body: { hostname, environment: 'production', ...more } });
const get = async (id: string): Promise<Domain> => (await api('GET', path(shop.project, `/${id}`))).body;
const becomes = (id: string, wanted: (domain: Domain) => boolean) => names.becomes(id, wanted);
const active = (hostname: string) => names.active(hostname);
const renewals = (hostname: string) => names.renewals(hostname);

test('routers are told of the names that go with an environment or a project', async () => {
  const { id } = (await api('POST', '/v1/projects', { body: { name: 'Goes' } })).body;
  await api('POST', `/v1/projects/${id}/environments`, { body: { name: 'staging' } });
  const [first, second] = [newName(), newName()];
  await add(first, { environment: 'staging' }, id);
  await add(second, {}, id);
  const told: string[] = [];
  const note = (domains: { hostname: string }[]) => told.push(...domains.map(({ hostname }) => hostname));
  for (const [deleted, name] of [
    [`/v1/projects/${id}/environments/staging`, first],
    [`/v1/projects/${id}`, second],
  ] as const) {
    const domains = `/v1/projects/${id}/domains`;
    const isIssued = async () => (await api('GET', domains)).body.data.every((domain: Domain) => isActive(domain));
    await until('their certificates', isIssued);
    const unsubscribe = subscribe(t.app.store.db, 'domains', note);
    assert.equal((await api('DELETE', deleted)).status, 204);
    unsubscribe();
    assert.deepEqual(told.splice(0), [name]);
  }
});

describe('adding', () => {
  test('201: pending at first, then a certificate that clients which trust the root accept', async () => {
    const { status, headers, body } = await add('Bücher.Example.');
    assert.equal(status, 201);
    assert.equal(body.hostname, 'xn--bcher-kva.example');
    assert.equal(body.state, 'pending');
    assert.equal(body.certificate, null);
    assert.equal(body.url, `https://xn--bcher-kva.example:${t.app.routerTlsPort}`);
    assert.match(headers.get('location')!, new RegExp(`/v1/projects/${shop.project}/domains/${body.id}$`));
    const { certificate, last_error, next_attempt_at } = await becomes(body.id, isActive);
    assert.deepEqual([last_error, next_attempt_at], [null, null]);
    const shown = await handshake(visitor, 'xn--bcher-kva.example');
    assert.equal(shown.serialNumber.toLowerCase(), certificate!.serial);
    assert.equal(shown.fingerprint256.replaceAll(':', '').toLowerCase(), certificate!.fingerprint_sha256);
    const life = Date.parse(certificate!.not_after) - Date.parse(certificate!.not_before);
    assert.equal(life, 90 * dayMs);
    assert.equal(Date.parse(certificate!.renew_at), Date.parse(certificate!.not_before) + (life * 2) / 3);
    assert.match(certificate!.issuer, /Sluice local CA/);
  });

  test('400: a hostname that cannot be added, with the reason', async () => {
    const wrong: [string, RegExp][] = [
      ['*.shop.example', /wildcard/],
      ['192.0.2.1', /address/],
      ['shop.example:443', /port/],
      ['https://shop.example', /https/],
      ['shop', /dot/],
      ['shop-production.apps.example', /apps\.example/],
      ['apps.example', /apps\.example/],
      ['api.example.com', /service itself/],
      [`${'a'.repeat(64)}.example`, /63/],
    ];
    for (const [hostname, reason] of wrong) {
      const { status, body } = await add(hostname);
      assert.equal(status, 400, hostname);
      assert.equal(body.error.code, 'invalid_request');
      assert.equal(body.error.details[0].path, 'body.hostname');
      assert.match(body.error.details[0].message, reason);
    }
  });

  test('422: an unknown environment', async () => {
    const { status, body } = await add(newName(), { environment: 'nowhere' });
    assert.deepEqual([status, body.error.code], [422, 'environment_unknown']);
  });

  test('409: the hostname is taken; the answer does not say by which project', async () => {
    const hostname = newName();
    await active(hostname);
    const other = await Shop.open(t.url);
    const { status, body } = await add(hostname.toUpperCase(), {}, other.project);
    assert.deepEqual([status, body.error.code], [409, 'domain_taken']);
    assert.ok(!JSON.stringify(body).includes(shop.project));
    const many = await Promise.all(Array.from({ length: 8 }, () => add('once.example', {}, other.project)));
    assert.deepEqual(many.map((answer) => answer.status).sort(), [201, ...Array(7).fill(409)]);
  });

  test('422: more than 1,000 domains in a project', async () => {
    const full = await Shop.open(t.url);
    const { db } = t.app.store;
    const { body } = await add(newName(), {}, full.project);
    const row = await db.selectFrom('domain').selectAll().where('id', '=', body.id).executeTakeFirstOrThrow();
    const copies = Array.from({ length: 999 }, (_, n) => ({
      ...row,
      id: `${row.id.slice(0, -4)}${String(n).padStart(4, '0')}`,
      hostname: `full-${n}.example`,
      next_attempt_at: null,
      certificate_id: null,
    }));
    for (let at = 0; at < copies.length; at += 333)
      await db
        .insertInto('domain')
        .values(copies.slice(at, at + 333))
        .execute();
    const refused = await add(newName(), {}, full.project);
    assert.deepEqual([refused.status, refused.body.error.code], [422, 'quota_exceeded']);
    const page = (await api('GET', path(full.project, '?limit=100'))).body;
    assert.equal(page.data.length, 100);
    assert.equal(page.page.has_more, true);
    assert.equal((await api('DELETE', `/v1/projects/${full.project}`)).status, 204);
    assert.equal((await add('full-1.example')).status, 201);
  });
});

describe('reading', () => {
  test('lists newest first, by environment', async () => {
    const other = await Shop.open(t.url);
    await other.api('POST', '/environments', { name: 'staging' });
    const ids = [];
    for (const environment of ['production', 'staging', 'staging'])
      ids.unshift((await add(newName(), { environment }, other.project)).body.id);
    const listed = async (query: string) =>
      (await api('GET', path(other.project, query))).body.data.map((d: Domain) => d.id);
    assert.deepEqual(await listed(''), ids);
    assert.deepEqual(await listed('?environment=staging'), ids.slice(0, 2));
    assert.deepEqual(await listed('?environment=nowhere'), []);
  });

  test('404: a domain of another project or account', async () => {
    const { id } = await active(newName());
    const other = await Shop.open(t.url);
    for (const [method, rest] of [
      ['GET', ''],
      ['DELETE', ''],
      ['POST', '/verify'],
      ['POST', '/renew'],
    ] as const) {
      const { status, body } = await api(method, path(other.project, `/${id}${rest}`));
      assert.deepEqual([status, body.error.code], [404, 'domain_not_found']);
    }
    const bound = await api('POST', '/v1/tokens', {
      body: { name: 'bound', scopes: ['domains:read'], project_ids: [other.project] },
    });
    const foreign = await api('GET', path(shop.project, `/${id}`), { token: bound.body.token });
    assert.deepEqual([foreign.status, foreign.body.error.code], [404, 'project_not_found']);
    const refused = await api('POST', path(other.project), {
      token: bound.body.token,
      body: { hostname: newName(), environment: 'production' },
    });
    assert.deepEqual([refused.status, refused.body.error.code], [403, 'insufficient_scope']);
  });

  test('no answer and no column holds a private key in plain text', async () => {
    const { id } = await active(newName());
    const rows = await t.app.store.db.selectFrom('certificate').selectAll().where('domain_id', '=', id).execute();
    const root = await t.app.store.db.selectFrom('meta').selectAll().where('name', '=', 'local_ca').execute();
    for (const text of [JSON.stringify(await get(id)), JSON.stringify(rows), JSON.stringify(root)])
      assert.ok(!text.includes('PRIVATE KEY'));
  });
});

describe('serving', () => {
  test('a domain leads to its environment, with TLS and without', async () => {
    await shop.released('registry.example/shop:1');
    const hostname = newName();
    await active(hostname);
    const { status, body } = await until('the route', async () => {
      const visit = await visitTls(visitor, hostname);
      return visit.status === 200 ? visit : undefined;
    });
    assert.equal(status, 200);
    assert.match(body, /registry\.example\/shop:1/);
    const port = Number(new URL(t.app.routerUrl!.replace('*', 'x')).port);
    assert.equal((await visitPlain(port, hostname)).status, 200);
  });

  test('an environment’s own address has a certificate too', async () => {
    const own = shop.host.split(':')[0]!;
    assert.equal((await visitTls(visitor, own)).status, 200);
    const serial = (await handshake(visitor, own)).serialNumber;
    assert.equal((await handshake(visitor, own)).serialNumber, serial);
  });

  test('a handshake for an unknown name fails', async () => {
    for (const name of ['nobody.example', 'nobody.apps.example', 'apps.example'])
      await assert.rejects(handshake(visitor, name), name);
  });

  test('many first handshakes at once', async () => {
    const hostname = newName();
    const { certificate } = await active(hostname);
    const shown = await Promise.all(Array.from({ length: 50 }, () => handshake(visitor, hostname)));
    for (const { serialNumber } of shown) assert.equal(serialNumber.toLowerCase(), certificate!.serial);
  });

  test('the root certificate is public, signs itself, and stays the same', async () => {
    const answer = await fetch(`${t.url}/local-ca.pem`);
    assert.equal(answer.headers.get('content-type'), 'application/x-pem-file');
    const pem = await answer.text();
    assert.equal(pem, visitor.root);
    const root = new X509Certificate(pem);
    assert.ok(root.ca && root.checkIssued(root));
  });
});

describe('removing', () => {
  test('204: no route, no certificate, no alert rule; the name is free again', async () => {
    const hostname = newName();
    const { id } = await active(hostname);
    const rules = async () =>
      (await api('GET', `/v1/projects/${shop.project}/alert-rules?limit=100`)).body.data.filter(
        (rule: { name: string }) => rule.name.includes(hostname),
      );
    assert.equal((await rules()).length, 1);
    const etag = (await api('GET', path(shop.project, `/${id}`))).headers.get('etag')!;
    const stale = await api('DELETE', path(shop.project, `/${id}`), { headers: { 'if-match': '"0"' } });
    assert.equal(stale.status, 412);
    const gone = await api('DELETE', path(shop.project, `/${id}`), { headers: { 'if-match': etag } });
    assert.equal(gone.status, 204);
    assert.equal((await rules()).length, 0);
    await assert.rejects(handshake(visitor, hostname));
    const left = await t.app.store.db.selectFrom('certificate').select('id').where('domain_id', '=', id).execute();
    assert.deepEqual(left, []);
    await active(hostname);
    await handshake(visitor, hostname);
  });

  test('deleting an environment deletes its domains', async () => {
    const other = await Shop.open(t.url);
    const hostname = newName();
    const { body } = await add(hostname, {}, other.project);
    await until('the certificate', async () => {
      const domain = (await api('GET', path(other.project, `/${body.id}`))).body;
      return isActive(domain) ? true : undefined;
    });
    await handshake(visitor, hostname);
    assert.equal((await api('DELETE', `/v1/projects/${other.project}/environments/production`)).status, 204);
    await until('the certificate to go', () =>
      handshake(visitor, hostname).then(
        () => undefined,
        () => true,
      ),
    );
  });
});

describe('renewing', () => {
  test('202: a new certificate at once, with one event', async () => {
    const hostname = newName();
    const { id, certificate } = await active(hostname);
    assert.deepEqual(await renewals(hostname), []);
    const asked = await api('POST', path(shop.project, `/${id}/renew`));
    assert.equal(asked.status, 202);
    assert.equal(asked.body.certificate.serial, certificate!.serial);
    const renewed = await becomes(id, (domain) => domain.certificate!.serial !== certificate!.serial);
    assert.equal((await handshake(visitor, hostname)).serialNumber.toLowerCase(), renewed.certificate!.serial);
    const [event, ...more] = await renewals(hostname);
    assert.deepEqual(more, []);
    assert.deepEqual(event, renewed);
  });

  test('verify changes nothing when the certificate is valid', async () => {
    const { id, certificate } = await active(newName());
    const { status, body } = await api('POST', path(shop.project, `/${id}/verify`));
    assert.equal(status, 200);
    assert.equal(body.state, 'active');
    await until('it to be looked at', async () => {
      const row = await t.app.store.db.selectFrom('domain').selectAll().where('id', '=', id).executeTakeFirstOrThrow();
      return row.next_attempt_at! > clock.now() + dayMs && row.lease_until === 0 ? true : undefined;
    });
    assert.equal((await get(id)).certificate!.serial, certificate!.serial);
  });

  test('at two thirds of its life, under load, without a failed request', async () => {
    const hostname = newName();
    const { id, certificate } = await active(hostname);
    await until('the route', async () => ((await visitTls(visitor, hostname)).status === 200 ? true : undefined));
    const load = tlsLoad(visitor, hostname);
    await until('some visits', () => (load.visits() > 20 ? true : undefined));
    behindMs = 0;
    const renewed = await becomes(id, (domain) => domain.certificate!.serial !== certificate!.serial);
    await until('visitors to be shown it', () => (load.serials.has(renewed.certificate!.serial) ? true : undefined));
    const { failed } = await load.stop();
    assert.deepEqual(failed, []);
    assert.equal((await renewals(hostname)).length, 1);
    assert.ok(Date.parse(renewed.certificate!.not_after) > Date.parse(certificate!.not_after) + 60 * dayMs);
  });
});
