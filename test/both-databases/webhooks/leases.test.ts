// A process whose leases run out before it looks again, as after a standstill: it does not send what it is sending.
import assert from 'node:assert/strict';
import type { ServerResponse } from 'node:http';
import { after, test } from 'node:test';
import { Receiver } from '../../helpers/receiver.ts';
import { sharedApp } from '../../helpers/shared-app.ts';
import { until } from '../../helpers/wait.ts';

// The dispatcher looks once a second.
const t = sharedApp({ webhookTimings: { leaseMs: 100, timeoutMs: 60_000 } });

test('its leases are renewed while an answer is awaited, and nothing arrives twice', async () => {
  const { db } = t.app.store;
  const held = Promise.withResolvers<ServerResponse>();
  const receiver = await Receiver.open((_, response) => held.resolve(response));
  after(() => receiver.close());
  const { body: webhook } = await t.call('POST', '/v1/webhooks', { body: { url: receiver.url, events: ['*'] } });
  await t.call('POST', `/v1/webhooks/${webhook.id}/test`);
  await receiver.has(1);
  const delivery = () =>
    db.selectFrom('delivery').selectAll().where('webhook_id', '=', webhook.id).executeTakeFirstOrThrow();
  const { lease, lease_until: firstEnd } = await delivery();
  await until('a lease that ran out to be renewed twice', async () => (await delivery()).lease_until > firstEnd + 1500);
  assert.equal((await delivery()).lease, lease);
  (await held.promise).end();
  await until('the outcome', async () => (await delivery()).state === 'succeeded');
  assert.equal((await delivery()).attempts, 1);
  assert.equal(receiver.arrivals.length, 1);
});
