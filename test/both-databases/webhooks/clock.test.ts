// Deliveries and idempotency keys while the clock of the machine is wrong: what is due, and whose lease it is, goes by a
// clock that does not jump, on PostgreSQL by that of the database.
import assert from 'node:assert/strict';
import { after, beforeEach, test } from 'node:test';
import { insertDeliveries } from '../../../src/events/new-deliveries.ts';
import { answering, Receiver } from '../../helpers/receiver.ts';
import { sharedApp } from '../../helpers/shared-app.ts';

const hourMs = 3600_000;
let offMs = 0;
const clock = { now: () => Date.now() + offMs, monotonic: () => performance.now() };
const t = sharedApp({ tokenLimit: 1_000_000, clock, webhookTimings: { scheduleMs: [300, 300, 300] } });
const receivers: Receiver[] = [];
after(() => Promise.all(receivers.map((receiver) => receiver.close())));
beforeEach(() => {
  offMs = 0;
});

async function register(behave = answering(200)): Promise<{ receiver: Receiver; webhook: string }> {
  const receiver = await Receiver.open(behave);
  receivers.push(receiver);
  const { body } = await t.call('POST', '/v1/webhooks', { body: { url: receiver.url, events: ['*'] } });
  return { receiver, webhook: body.id };
}

test('set back by an hour: a delivery that waits for its next attempt is sent when it is due', async () => {
  const { receiver, webhook } = await register((_, response) => {
    offMs = -hourMs;
    response.writeHead(receiver.arrivals.length === 1 ? 503 : 200).end();
  });
  offMs = hourMs;
  await t.call('POST', `/v1/webhooks/${webhook}/test`);
  await receiver.has(2);
});

test('set forward by an hour: a delivery that another process has leased is left to it', async () => {
  const { db } = t.app.store;
  const { receiver, webhook } = await register();
  const row = { id: 'dlv_leased', webhook_id: webhook, event_id: 'evt_leased', type: 'webhook.test' as const };
  await db.transaction().execute(async (tx) => {
    const times = { position: 0, created_at: Date.now(), due_at: 0 };
    await insertDeliveries(tx, [{ ...row, ...times, test_body: '{"id":"evt_leased"}' }]);
    await tx
      .updateTable('delivery')
      .set({ lease: 'another', lease_until: Date.now() + 60_000 })
      .where('id', '=', row.id)
      .execute();
  });
  offMs = hourMs;
  await t.call('POST', `/v1/webhooks/${webhook}/test`);
  await receiver.has(1);
  assert.notEqual(receiver.arrivals[0]!.event.id, row.event_id);
  await db.updateTable('delivery').set({ lease_until: 0 }).where('id', '=', row.id).execute();
  assert.equal((await receiver.has(2))[1]!.event.id, row.event_id);
});

test('set forward by an hour: a request that is under way elsewhere is not carried out a second time', async () => {
  const { db } = t.app.store;
  const create = () =>
    t.call('POST', '/v1/projects', { body: { name: 'once' }, headers: { 'idempotency-key': 'once' } });
  assert.equal((await create()).status, 201);
  const rows = db.updateTable('idempotency').where('key', '=', 'once');
  const under = (leaseUntil: number) =>
    rows.set({ owner: 'another', response_sealed: null, lease_until: leaseUntil }).execute();
  await under(Date.now() + 60_000);
  offMs = hourMs;
  assert.equal((await create()).body.error.code, 'idempotency_in_flight');
  // Nobody can have taken this lease: the clock of that process was wrong.
  await under(Date.now() + 10 * hourMs);
  assert.equal((await create()).status, 201);
});
