// A service that is reachable from outside sends nothing to addresses that are not public, however they are written.
import assert from 'node:assert/strict';
import { networkInterfaces } from 'node:os';
import { after, before, test } from 'node:test';
import { call, startApp, type TestApp } from '../../helpers/app.ts';
import { type Dns, startDns } from '../../helpers/dns.ts';
import { answering, Receiver } from '../../helpers/receiver.ts';
import { until } from '../../helpers/wait.ts';

const publicAddress = '93.184.215.14';
let t: TestApp;
let url: string;
let dns: Dns;
let receiver: Receiver;
/** What the changing name resolves to. */
let changing = [publicAddress];

before(async () => {
  receiver = await Receiver.open(answering(200, {}, 'a secret of the network'));
  const names: Record<string, () => string[]> = {
    'private.test': () => ['10.0.0.1'],
    'mixed.test': () => [publicAddress, '127.0.0.1'],
    'changing.test': () => changing,
  };
  dns = await startDns((name) => names[name]?.() ?? []);
  // Listens on every address of this machine, not only on loopback, though the tests call it over loopback.
  t = await startApp({
    tokenLimit: 1_000_000,
    lookup: dns.lookup,
    webhookTimings: { scheduleMs: [20, 20], timeoutMs: 2000 },
    env: { SLUICE_HOST: '0.0.0.0' },
  });
  url = t.url;
});
after(async () => {
  await t.stop();
  await receiver.close();
  dns.close();
});

const port = () => new URL(receiver.url).port;
const create = async (target: string) => {
  const { status, body } = await call(url, 'POST', '/v1/webhooks', { body: { url: target, events: ['*'] } });
  return { status, code: body.error?.code, id: body.id as string };
};

/** Every attempt of a test delivery, once it has failed. */
async function attemptsOf(id: string) {
  const { body } = await call(url, 'POST', `/v1/webhooks/${id}/test`);
  return until('the end of it', async () => {
    const detail = await call(url, 'GET', `/v1/webhooks/${id}/deliveries/${body.id}`);
    return detail.body.state === 'failed' ? detail.body.attempts : undefined;
  });
}

const own = Object.values(networkInterfaces())
  .flat()
  .flatMap((one) => (one && !one.internal && one.family === 'IPv4' ? [one.address] : []));

const forbidden = () => [
  `127.0.0.1:${port()}`,
  `localhost.:${port()}`,
  `2130706433:${port()}`,
  `0x7f.1:${port()}`,
  `0177.0.0.1:${port()}`,
  `0.0.0.0:${port()}`,
  '169.254.169.254',
  `[::1]:${port()}`,
  `[::ffff:127.0.0.1]:${port()}`,
  '[::ffff:10.0.0.1]',
  '[::ffff:a00:1]',
  '[64:ff9b::10.0.0.1]',
  '[2002:a00:1::1]',
  '[fe80::1]',
  '[fd00::1]',
  '10.0.0.1',
  'private.test',
  'mixed.test',
  ...own.filter((address) => /^(10|192\.168|172\.(1[6-9]|2\d|3[01]))\./.test(address)).map((ip) => `${ip}:${port()}`),
];

test('422 at create and at update, for addresses and for names that resolve to them', async () => {
  const { id } = await create('http://changing.test/');
  for (const host of forbidden().filter((host) => !host.startsWith('localhost'))) {
    const { status, code } = await create(`http://${host}/hook`);
    assert.deepEqual([status, code], [422, 'webhook_url_not_allowed'], host);
    const changed = await call(url, 'PATCH', `/v1/webhooks/${id}`, { body: { url: `https://${host}/hook` } });
    assert.equal(changed.body.error?.code, 'webhook_url_not_allowed', host);
  }
});

test('refused at every send too, before a packet leaves', async () => {
  const { id } = await create('http://changing.test/');
  for (const host of forbidden()) {
    // As if it had been allowed at create, by another setting or another DNS answer.
    const target = new URL(`http://${host}/hook`).href;
    await t.app.store.db.updateTable('webhook').set({ url: target, failures: 0 }).where('id', '=', id).execute();
    const attempts = await attemptsOf(id);
    assert.equal(attempts.length, 3, host);
    for (const { status, error } of attempts) {
      assert.equal(status, null, host);
      assert.match(error, host.startsWith('localhost') ? /ENOTFOUND|ENODATA|refused/ : /^refused: /, host);
    }
  }
  assert.equal(receiver.connections, 0);
});

test('a name that resolved to a public address at create and to a private one at send', async () => {
  changing = [publicAddress];
  const { status, id } = await create(`http://changing.test:${port()}/hook`);
  assert.equal(status, 201);
  const asked = dns.questions.length;
  changing = ['127.0.0.1'];
  const attempts = await attemptsOf(id);
  assert.ok(attempts.every(({ error }: { error: string }) => error.startsWith('refused: ')));
  assert.equal(dns.questions.length - asked, attempts.length, 'asked once for each attempt');
  assert.equal(receiver.connections, 0);
});

test('a name whose answer changes between two lookups: the connection uses the address that was checked', async () => {
  let count = 0;
  const flipping = await startDns(() => (++count % 2 === 1 ? ['127.0.0.1'] : ['10.0.0.1']));
  const open = await startApp({ lookup: flipping.lookup, webhookTimings: { scheduleMs: [20] } });
  try {
    const register = await open.call('POST', '/v1/webhooks', {
      body: { url: `http://flip.test:${port()}/hook`, events: ['*'] },
    });
    assert.equal(register.status, 201); // the first answer
    count = 0;
    await open.call('POST', `/v1/webhooks/${register.body.id}/test`);
    await receiver.has(1); // there is no second lookup
    assert.equal(count, 1);
    assert.equal(receiver.arrivals[0]!.headers.host, `flip.test:${port()}`);
  } finally {
    await open.stop();
    flipping.close();
  }
});

test('a range that the operator allowed: deliveries arrive, and nobody is shown what answered', async () => {
  const open = await startApp({ env: { SLUICE_HOST: '0.0.0.0', SLUICE_WEBHOOK_ALLOW_CIDRS: '127.0.0.0/8' } });
  try {
    const before = receiver.arrivals.length;
    const register = await open.call('POST', '/v1/webhooks', { body: { url: receiver.url, events: ['*'] } });
    await open.call('POST', `/v1/webhooks/${register.body.id}/test`);
    await receiver.has(before + 1);
    const { body } = await until('the attempt', async () => {
      const [{ id }] = (await open.call('GET', `/v1/webhooks/${register.body.id}/deliveries`)).body.data;
      const detail = await open.call('GET', `/v1/webhooks/${register.body.id}/deliveries/${id}`);
      return detail.body.attempts.length > 0 ? detail : undefined;
    });
    const [{ status, answer }] = body.attempts;
    assert.deepEqual([status, answer], [200, null], 'the answer from inside is not shown');
    const other = await open.call('POST', '/v1/webhooks', { body: { url: 'http://10.0.0.1/', events: ['*'] } });
    assert.equal(other.status, 422);
  } finally {
    await open.stop();
  }
});
