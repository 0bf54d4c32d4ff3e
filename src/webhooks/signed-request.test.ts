import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { test } from 'node:test';
import fc from 'fast-check';
import { Webhook } from 'standardwebhooks';
import { headerNames, signatureOf, signedHeaders } from './signed-request.ts';

const newSecret = () => `whsec_${randomBytes(32).toString('base64')}`;

test('openssl computes the same signature', () => {
  const secret = newSecret();
  for (const body of ['{}', '{"name":"Käse 🧀"}', '{"a":"\\u0000"}', ' ']) {
    const args = ['dgst', '-sha256', '-mac', 'HMAC', '-macopt', `hexkey:${Buffer.from(secret).toString('hex')}`];
    const printed = execFileSync('openssl', args, { input: body, encoding: 'utf8' });
    assert.equal(printed.trim().split(' ').at(-1), signatureOf(secret, body));
  }
});

test('standardwebhooks verifies the other headers, with either secret while both are valid, and with no third', () => {
  const names = headerNames('X-Service-Signature');
  fc.assert(
    fc.property(fc.json(), (data) => {
      const [current, before] = [newSecret(), newSecret()];
      const body = JSON.stringify({ id: 'evt_1', data });
      const headers = signedHeaders(names, {
        eventId: 'evt_1',
        deliveryId: 'dlv_1',
        type: 'alert.fired',
        body,
        secrets: [current, before],
        timestampS: Math.floor(Date.now() / 1000),
      });
      for (const secret of [current, before])
        assert.deepEqual(new Webhook(secret).verify(body, headers), { id: 'evt_1', data });
      assert.throws(() => new Webhook(newSecret()).verify(body, headers));
      assert.throws(() => new Webhook(current).verify(`${body} `, headers));
    }),
    { numRuns: 50 },
  );
});

test('the neighbours of the signature header are named like it', () => {
  assert.deepEqual(headerNames('X-Shop-Signature'), {
    signature: 'X-Shop-Signature',
    event: 'X-Shop-Event',
    delivery: 'X-Shop-Delivery',
  });
  assert.equal(headerNames('Seal').event, 'X-Service-Event');
});
