// A hostname leads somewhere only once it is proved, and the local CA signs only names that nobody can own.
import assert from 'node:assert/strict';
import { after, describe, test } from 'node:test';
import type { Domain } from '../../../src/contract/domains.ts';
import { publish } from '../../../src/signals/signals.ts';
import { startApp } from '../../helpers/app.ts';
import { cli, envOf } from '../../helpers/cli.ts';
import { type Dns, startDns } from '../../helpers/dns.ts';
import { freePort } from '../../helpers/free-port.ts';
import { isActive, Names } from '../../helpers/names.ts';
import { pebbleMissing, startPebble } from '../../helpers/pebble.ts';
import { sharedApp } from '../../helpers/shared-app.ts';
import { Shop } from '../../helpers/shop.ts';
import { handshake, visitPlain, visitTls } from '../../helpers/tls-visit.ts';
import { until } from '../../helpers/wait.ts';

const records = new Map<string, string[]>();
let dns: Dns;
let shop: Shop;
let names: Names;
let stranger: string;
let strangers: string;
const resolveTxt = (name: string) => dns.resolveTxt(name);
const t = sharedApp({ tokenLimit: 1_000_000, resolveTxt, env: { SLUICE_LOCAL_DOMAINS: 'corp.lan' } }, async () => {
  dns = await startDns(
    () => [],
    (name) => records.get(name) ?? [],
  );
  shop = await Shop.open(t.url);
  await shop.released('registry.example/shop:1');
  names = new Names(t.url, shop.project);
  stranger = JSON.parse((await cli(['account', 'create', 'Stranger', '--json'], t.env)).stdout).token;
  strangers = (await t.call('POST', '/v1/projects', { token: stranger, body: { name: 'Theirs' } })).body.id;
});
after(() => dns?.close());

const port = () => Number(shop.host.split(':')[1]);
const add = (hostname: string, { token, project = shop.project }: { token?: string; project?: string } = {}) =>
  t.call('POST', `/v1/projects/${project}/domains`, {
    ...(token !== undefined && { token }),
    body: { hostname, environment: 'production' },
  });
const addByStranger = (hostname: string) => add(hostname, { token: stranger, project: strangers });
const visit = async (hostname: string) => (await visitPlain(port(), hostname)).status;
const hasFailed = ({ state }: Domain) => state === 'failed';
const root = async () => ({ port: t.app.routerTlsPort!, root: await (await fetch(`${t.url}/local-ca.pem`)).text() });

describe('with the local CA', () => {
  test('a name that somebody may own is not routed and not signed; the domain says how to prove it', async () => {
    for (const hostname of ['www.google.com', 'shop.victim.example.com', 'localhost.attacker.io', 'shop.notatest']) {
      const { status, body } = await add(hostname);
      assert.equal(status, 201);
      assert.deepEqual(body.txt_record.name, `_sluice.${hostname}`);
      assert.match(body.txt_record.value, /^acc_[0-9a-z]{26}$/);
      assert.equal(body.proof, null);
      const failed = await names.becomes(body.id, hasFailed);
      assert.match(failed.last_error!, new RegExp(`TXT record _sluice\\.${hostname} with the value acc_`));
      assert.equal(failed.certificate, null);
      assert.equal(await visit(hostname), 404);
      await assert.rejects(handshake(await root(), hostname));
    }
  });

  test('names that nobody can own, and those the operator vouches for, need no proof', async () => {
    for (const hostname of ['a.b.localhost.test', 'proof.example', 'shop.internal', 'shop.corp.lan']) {
      const { certificate, proof } = await names.active(hostname);
      assert.equal(proof, 'not_needed');
      assert.ok(certificate);
      assert.equal((await visitTls(await root(), hostname)).status, 200);
      assert.equal(await visit(hostname), 200);
    }
  });

  test('a TXT record with the account’s id proves it: routed, without a certificate', async () => {
    const { body: domain } = await add('txt.example.com');
    assert.deepEqual((await names.becomes(domain.id, hasFailed)).txt_record.found, []);
    records.set('_sluice.txt.example.com', ['v=spf1 -all', 'acc_another']);
    const early = await names.api('POST', `/${domain.id}/verify`);
    assert.deepEqual([early.status, early.body.error.code], [422, 'domain_not_pointed']);
    assert.match(early.body.error.details[0].message, /, but v=spf1 -all, acc_another$/);
    await t.app.store.db.updateTable('domain').set({ next_attempt_at: 1 }).where('id', '=', domain.id).execute();
    publish(t.app.store.db, 'domains', { hostname: 'txt.example.com' });
    const wrong = await names.becomes(domain.id, ({ txt_record }) => txt_record.found?.length === 2);
    assert.deepEqual(wrong.txt_record.found, ['v=spf1 -all', 'acc_another']);
    assert.match(
      (await cli(['domains', 'show', 'txt.example.com', '--project', shop.project], envOf(t.url))).stderr,
      /Found instead: v=spf1 -all, acc_another/,
    );
    records.set('_sluice.txt.example.com', ['v=spf1 -all', domain.txt_record.value]);
    assert.equal((await names.api('POST', `/${domain.id}/verify`)).body.proof, 'txt_record');
    const active = await names.becomes(domain.id, isActive);
    const { certificate, last_error, next_attempt_at, txt_record } = active;
    assert.deepEqual([certificate, last_error, next_attempt_at, txt_record.found], [null, null, null, null]);
    await until('the route', async () => (await visit('txt.example.com')) === 200);
    await assert.rejects(handshake(await root(), 'txt.example.com'));
  });

  test('the record of one account proves nothing for another', async () => {
    const { body: mine } = await add('mine.example.com');
    records.set('_sluice.theirs.example.com', [mine.txt_record.value]);
    const { body: theirs } = await addByStranger('theirs.example.com');
    assert.notEqual(theirs.txt_record.value, mine.txt_record.value);
    const path = `/v1/projects/${strangers}/domains/${theirs.id}/verify`;
    assert.equal((await t.call('POST', path, { token: stranger })).status, 422);
  });

  test('a domain that was in use before proofs were asked for is renewed as before', async () => {
    const { id } = await names.active('before.example');
    const old = { hostname: 'before.example.com', proof: 'earlier' } as const;
    await t.app.store.db.updateTable('domain').set(old).where('id', '=', id).execute();
    assert.equal((await names.api('POST', `/${id}/renew`)).status, 202);
    await until('the renewal', async () => (await names.renewals('before.example.com')).length === 1);
    await handshake(await root(), 'before.example.com');
  });

  test('who only claims a name does not keep its owner from it', async () => {
    const { body: squatter } = await addByStranger('wanted.example.com');
    const refused = await add('wanted.example.com');
    assert.deepEqual([refused.status, refused.body.error.code], [409, 'domain_taken']);
    assert.match(JSON.stringify(refused.body.error.details), /TXT record _sluice\.wanted\.example\.com/);
    const { value } = (await add('other.example.com')).body.txt_record;
    records.set('_sluice.wanted.example.com', [value]);
    const { status, body } = await add('wanted.example.com');
    assert.deepEqual([status, body.proof], [201, 'txt_record']);
    await until('the route', async () => (await visit('wanted.example.com')) === 200);
    const gone = await t.call('GET', `/v1/projects/${strangers}/domains/${squatter.id}`, { token: stranger });
    assert.equal(gone.status, 404);
    const proved = await addByStranger('wanted.example.com');
    assert.deepEqual([proved.status, proved.body.error.code], [409, 'domain_taken']);
  });
});

describe('with an ACME server', { skip: pebbleMissing }, () => {
  test('a name is routed once the authority has given a certificate for it, not before', async () => {
    const plain = await freePort();
    const pebble = await startPebble({ httpPort: plain });
    const own = await startApp({
      tokenLimit: 1_000_000,
      lookup: pebble.lookup,
      env: {
        SLUICE_ROUTER_PORT: String(plain),
        SLUICE_ACME_DIRECTORY: pebble.directory,
        SLUICE_ACME_CA_FILE: pebble.caFile,
        SLUICE_HTTPS_REDIRECT: 'off',
      },
    });
    try {
      const acmeShop = await Shop.open(own.url);
      await acmeShop.released('registry.example/shop:1');
      const acmeNames = new Names(own.url, acmeShop.project);
      await pebble.point('elsewhere.example', null);
      const unproved = await acmeNames.becomes((await acmeNames.add('elsewhere.example')).id, hasFailed);
      assert.equal(unproved.proof, null);
      assert.equal((await visitPlain(plain, 'elsewhere.example')).status, 404);
      const { proof } = await acmeNames.active('here.example');
      assert.equal(proof, 'certificate');
      await until('the route', async () => (await visitPlain(plain, 'here.example')).status === 200);
    } finally {
      await own.stop();
      await pebble.stop();
    }
  });
});

test('domains that wait for silent DNS take no place of those that get a certificate', async () => {
  const timeoutMs = 3000;
  const asked: number[] = [];
  const silent = await startApp({
    resolveTxt: () => {
      asked.push(performance.now());
      return new Promise(() => {});
    },
  });
  try {
    const { db } = silent.app.store;
    const other = await Shop.open(silent.url);
    const own = new Names(silent.url, other.project);
    const { id } = await own.active('first.test');
    const like = await db.selectFrom('domain').selectAll().where('id', '=', id).executeTakeFirstOrThrow();
    const waiting = Array.from({ length: 48 }, (_, n) => ({
      ...like,
      ...{ id: `${id}_${n}`, account_id: `of-${n % 12}`, hostname: `silent-${n}.com`, proof: null },
      ...{ certificate_id: null, state: 'pending' as const, next_attempt_at: 1 },
    }));
    await db.insertInto('domain').values(waiting).execute();
    publish(db, 'domains', { hostname: 'silent-0.com' });
    // 32 certificates are issued at once, and no question ends before its time.
    const atOnce = () => asked.filter((at) => at > performance.now() - timeoutMs).length;
    await until('more questions at once than certificates', () => atOnce() > 32);
    await own.active('second.test');
  } finally {
    await silent.stop();
  }
});
