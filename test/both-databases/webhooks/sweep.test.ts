// What the sweeper clears away, and what that means for deliveries that are being sent.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sweepOld, sweepStopped } from '../../../src/webhooks/delivery-sweep.ts';
import {
  attemptsOf,
  claim,
  db,
  find,
  ids,
  newDeliveries,
  newWebhook,
  outcomeOf,
  queue,
  setUpQueue,
  startMs,
  statesOf,
} from './queue-fixture.ts';

setUpQueue();

test('what is pending for a disabled endpoint is given up; for others it stays', async () => {
  const [disabled, paused] = [await newWebhook({ state: 'disabled' }), await newWebhook({ state: 'paused' })];
  for (const webhook of [disabled, paused]) await newDeliveries(webhook, 2);
  assert.equal(await sweepStopped(db, startMs + 9), false);
  assert.deepEqual(await statesOf(disabled), ['failed', 'failed']);
  assert.deepEqual(await statesOf(paused), ['pending', 'pending']);
});

test('giving up ends the lease: an outcome that comes later is refused', async () => {
  const webhook = await newWebhook();
  const [id] = await newDeliveries(webhook, 1);
  const [claimed] = await claim();
  await db.updateTable('webhook').set({ state: 'disabled' }).where('id', '=', webhook).execute();
  await sweepStopped(db, startMs);
  await queue.complete([outcomeOf(claimed!)]);
  assert.equal((await find(id!)).state, 'failed');
  assert.deepEqual(await attemptsOf(id!), []);
});

test('of a deleted endpoint nothing is left', async () => {
  const webhook = await newWebhook();
  const [id] = await newDeliveries(webhook, 3);
  const [claimed] = await claim(startMs, { most: 2 });
  await queue.complete([outcomeOf(claimed!)]);
  await db.updateTable('webhook').set({ state: 'deleted' }).where('id', '=', webhook).execute();
  let rounds = 0;
  while (await sweepStopped(db, startMs)) assert.ok(++rounds < 5);
  assert.deepEqual(await statesOf(webhook), []);
  assert.deepEqual(await attemptsOf(id!), []);
  assert.deepEqual(await db.selectFrom('webhook').select('id').execute(), []);
});

test('what is old goes with its attempts, unless it is pending', async () => {
  const webhook = await newWebhook();
  const [done, pending] = await newDeliveries(webhook, 2);
  const claimed = await claim();
  await queue.complete([outcomeOf(claimed.find(({ id }) => id === done)!)]);
  assert.equal(await sweepOld(db, startMs), false);
  assert.equal((await attemptsOf(done!)).length, 1, 'not old enough');
  await sweepOld(db, startMs + 1000);
  const left = await db.selectFrom('delivery').select('id').execute();
  assert.deepEqual(
    left.map(({ id }) => id),
    [pending],
  );
  assert.deepEqual(await attemptsOf(done!), []);
});

test('events that have to stay, however many there are, do not hold up those behind them', async () => {
  const event = (sequence: number, account_id: string) => ({
    ...{ id: ids('evt'), account_id, project_id: 'prj', type: 'alert.fired' as const, body: '{}' },
    ...{ sequence, position: sequence, created_at: startMs },
  });
  const latest = Array.from({ length: 700 }, (_, n) => event(n, `acc_${n}`));
  const others = Array.from({ length: 5 }, (_, n) => event(1000 + n, 'acc'));
  await db
    .insertInto('event')
    .values([...latest, ...others])
    .execute();
  const swept = { after: '' };
  let rounds = 0;
  while (await sweepOld(db, startMs + 1000, swept)) assert.ok(++rounds < 10);
  const left = await db.selectFrom('event').select('id').execute();
  const kept = [...latest, others.at(-1)!].map(({ id }) => id);
  assert.deepEqual(left.map(({ id }) => id).sort(), kept.sort());
});
