import assert from 'node:assert/strict';
import { createHmac, randomBytes } from 'node:crypto';
import { test } from 'node:test';
import { Webhook } from 'standardwebhooks';
import { verifySignature, verifyWebhook } from './signature.ts';

const newSecret = () => `whsec_${randomBytes(32).toString('base64')}`;
const secret = newSecret();
const body = '{"name":"Käse 🧀"}';
const signature = createHmac('sha256', secret).update(body).digest('hex');

test('a signature is good for its bytes and its secret only', async () => {
  assert.equal(await verifySignature(body, signature, secret), true);
  assert.equal(await verifySignature(Buffer.from(body), signature, secret), true);
  assert.equal(await verifySignature(new TextEncoder().encode(body), signature, secret), true);
  assert.equal(await verifySignature(`${body} `, signature, secret), false);
  assert.equal(await verifySignature(body, signature, newSecret()), false);
  assert.equal(await verifySignature(body, signature, secret.slice('whsec_'.length)), false);
});

test('what is no signature is false, whatever it is', async () => {
  const wrong = ['', 'x', signature.slice(1), `${signature}00`, signature.toUpperCase(), `sha256=${signature}`, null];
  for (const header of [...wrong, undefined]) assert.equal(await verifySignature(body, header, secret), false);
  const flipped = signature.replace(/^./, (digit) => (digit === '0' ? '1' : '0'));
  assert.equal(await verifySignature(body, flipped, secret), false);
});

test('without a secret nothing is checked, and that is said', async () => {
  await assert.rejects(verifySignature(body, signature, ''), TypeError);
});

const at = new Date('2026-11-15T08:30:00Z');
const headersFor = (...secrets: string[]) => ({
  'webhook-id': 'evt_1',
  'webhook-timestamp': String(at.getTime() / 1000),
  'webhook-signature': secrets.map((each) => new Webhook(each).sign('evt_1', at, body)).join(' '),
});

test('Standard Webhooks: what its library signs is verified, in any spelling of the headers', async () => {
  const now = at.getTime();
  const headers = headersFor(secret);
  const shouted = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toUpperCase(), value]));
  for (const each of [headers, shouted, new Headers(headers)]) {
    assert.equal(await verifyWebhook(body, each, secret, { now }), true);
    assert.equal(await verifyWebhook(`${body} `, each, secret, { now }), false);
    assert.equal(await verifyWebhook(body, each, newSecret(), { now }), false);
  }
  const both = headersFor(newSecret(), secret);
  assert.equal(await verifyWebhook(body, both, secret, { now }), true, 'the second of two, during a rotation');
  assert.equal(await verifyWebhook(body, { ...headers, 'webhook-id': 'evt_2' }, secret, { now }), false);
  assert.equal(await verifyWebhook(body, { 'webhook-id': 'evt_1' }, secret, { now }), false);
});

test('Standard Webhooks: what is too old or from the future is refused', async () => {
  const headers = headersFor(secret);
  const late = (seconds: number, toleranceS?: number) =>
    verifyWebhook(body, headers, secret, { now: at.getTime() + seconds * 1000, ...(toleranceS && { toleranceS }) });
  assert.deepEqual(await Promise.all([late(299), late(301), late(-299), late(-301)]), [true, false, true, false]);
  assert.deepEqual(await Promise.all([late(59, 60), late(61, 60)]), [true, false]);
});
