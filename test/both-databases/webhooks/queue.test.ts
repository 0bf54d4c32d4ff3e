// The conformance suite of the delivery queue: what every implementation of it has to do.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Claimed } from '../../../src/webhooks/delivery-queue.ts';
import { opensAfter } from '../../../src/webhooks/endpoint-health.ts';
import { onPostgres } from '../../helpers/app.ts';
import {
  attemptsOf,
  claim,
  db,
  find,
  ids,
  idsOf,
  leaseMs,
  newDeliveries,
  newWebhook,
  outcomeOf,
  queue,
  retryAt,
  setUpQueue,
  startMs,
} from './queue-fixture.ts';

setUpQueue();

describe('claim', () => {
  test('gives what is needed to send: the delivery, its lease, its receiver, and the bytes of its event', async () => {
    const webhook = await newWebhook({ old_secret_sealed: 'old', old_secret_until: startMs + 1 });
    const eventId = ids('evt');
    const event = { id: eventId, account_id: 'acc', project_id: 'prj', type: 'alert.fired' as const, sequence: 1 };
    await db
      .insertInto('event')
      .values({ ...event, body: '{"of":"the event"}', created_at: startMs })
      .execute();
    const [id] = await newDeliveries(webhook, 1, { event_id: eventId, type: 'alert.fired', test_body: undefined });
    assert.deepEqual(await claim(startMs, { lease: 'mine' }), [
      {
        id,
        webhook_id: webhook,
        event_id: eventId,
        type: 'alert.fired',
        account_id: 'acc',
        attempts: 0,
        tried: 0,
        lease: 'mine',
        body: '{"of":"the event"}',
        url: `http://receiver.example/${webhook}`,
        ordering: 'none',
        secret_sealed: 'sealed',
        old_secret_sealed: 'old',
        old_secret_until: startMs + 1,
        failures: 0,
      },
    ]);
  });

  test('what is due first, as many as the endpoint has room for', async () => {
    const webhook = await newWebhook();
    const late = await newDeliveries(webhook, 40, { created_at: startMs });
    const early = await newDeliveries(webhook, 40, { created_at: startMs - 1000 });
    const load = { inFlight: 22, oldestAt: startMs - 1000, waiting: 0 };
    const claimed = await claim(startMs, { loads: new Map([[webhook, load]]) });
    assert.deepEqual(idsOf(claimed), early.slice(0, 10).sort());
    const rest = await claim();
    assert.equal(rest.length, 64, 'room for 32, and as many ahead');
    assert.deepEqual(idsOf(rest), [...early.slice(10), ...late.slice(0, 34)].sort());
  });

  test('nothing before it is due', async () => {
    const webhook = await newWebhook();
    await newDeliveries(webhook, 1, { created_at: startMs + 1 });
    assert.deepEqual(await claim(startMs), []);
    assert.equal((await claim(startMs + 1)).length, 1);
  });

  test('nothing that is leased, until the lease has run out', async () => {
    const webhook = await newWebhook();
    const [id] = await newDeliveries(webhook, 1);
    await claim(startMs);
    assert.deepEqual(await claim(startMs + leaseMs - 1), []);
    const [again] = await claim(startMs + leaseMs, { lease: 'next' });
    assert.deepEqual([again!.id, again!.lease], [id, 'next']);
  });

  test('accounts take turns: one with many endpoints leaves room for the others, and gets no more than its share', async () => {
    for (let n = 0; n < 100; n++) await newDeliveries(await newWebhook({ account_id: 'acc a' }), 2);
    const other = await newWebhook({ account_id: 'acc b' });
    const [first] = await newDeliveries(other, 1);
    const claimed = await claim(startMs, { most: 60, accounts: new Map([['acc a', { taken: 5, after: '' }]]) });
    const of = (account: string) => claimed.filter(({ account_id }) => account_id === account).map(({ id }) => id);
    assert.deepEqual(of('acc b'), [first]);
    assert.equal(of('acc a').length, 60 / 3 - 5);
    const none = await claim(startMs, { most: 60, accounts: new Map([['acc a', { taken: 30, after: '' }]]) });
    assert.deepEqual(none, []);
  });

  test('one claim takes so many of each account, and the next goes on behind them', async () => {
    for (let n = 0; n < 30; n++) await newDeliveries(await newWebhook({ account_id: 'acc a' }), 1);
    const [other] = await newDeliveries(await newWebhook({ account_id: 'acc b' }), 1);
    const of = (claimed: Claimed[], account: string) => claimed.filter(({ account_id }) => account_id === account);
    const first = await claim(startMs, { atOnce: 12 });
    assert.deepEqual([of(first, 'acc a').length, idsOf(of(first, 'acc b'))], [12, [other]]);
    const after = of(first, 'acc a')
      .map(({ webhook_id }) => webhook_id)
      .sort()
      .at(-1)!;
    const second = await claim(startMs, { atOnce: 12, accounts: new Map([['acc a', { taken: 12, after }]]) });
    assert.equal(second.length, 12);
    assert.ok(second.every(({ webhook_id }) => webhook_id > after));
  });

  test('no more than the limit; endpoints behind the one named come first', async () => {
    const webhooks = [await newWebhook(), await newWebhook(), await newWebhook()];
    for (const webhook of webhooks) await newDeliveries(webhook, 2);
    const [first, second, third] = webhooks.toSorted();
    const inTurn = async (after: string, limit: number) =>
      (await claim(startMs, { most: 2 * limit, accounts: new Map([['acc', { taken: 0, after }]]) }))
        .map(({ webhook_id }) => webhook_id)
        .sort();
    assert.deepEqual(await inTurn(first!, 2), [second, second]);
    assert.deepEqual(await inTurn(second!, 3), [first, third, third]);
  });

  test('only for endpoints that are enabled', async () => {
    for (const state of ['paused', 'disabled', 'deleted'] as const) await newDeliveries(await newWebhook({ state }), 1);
    assert.deepEqual(await claim(), []);
  });

  test('few for an endpoint that fails, and one at a time, when the probe is due, for one whose breaker is open', async () => {
    const failing = await newWebhook({ failures: 1 });
    const open = await newWebhook({ failures: opensAfter, probe_at: startMs + 1000 });
    await newDeliveries(failing, 5);
    await newDeliveries(open, 5);
    const early = await claim(startMs);
    assert.deepEqual(new Set(early.map(({ webhook_id }) => webhook_id)), new Set([failing]));
    assert.equal(early.length, 2);
    const busy = new Map([[failing, { inFlight: 2, oldestAt: startMs, waiting: 0 }]]);
    const probe = await claim(startMs + 1000, { loads: busy });
    assert.deepEqual(
      probe.map(({ webhook_id }) => webhook_id),
      [open],
    );
    const probing = new Map([...busy, [open, { inFlight: 1, oldestAt: startMs + 1000, waiting: 0 }]]);
    assert.deepEqual(await claim(startMs + 1000, { loads: probing }), []);
  });

  test('by several at once: each delivery goes to one of them', async () => {
    const webhook = await newWebhook();
    const all = await newDeliveries(webhook, 20);
    const claimed = (await Promise.all([claim(), claim(), claim()])).flat();
    assert.deepEqual(idsOf(claimed), all.toSorted());
  });
});

describe('strict order', () => {
  test('one in flight, in the order of positions', async () => {
    const webhook = await newWebhook({ ordering: 'strict' });
    const [first, second] = await newDeliveries(webhook, 2);
    const [claimed, ...more] = await claim();
    assert.equal(claimed!.id, first);
    assert.deepEqual(more, []);
    assert.deepEqual(await claim(), [], 'the second waits while the first is being sent');
    await queue.complete([outcomeOf(claimed!)]);
    assert.deepEqual(idsOf(await claim()), [second]);
  });

  test('also where several claim at once', async () => {
    const webhook = await newWebhook({ ordering: 'strict' });
    const [first] = await newDeliveries(webhook, 3);
    const claimed = (await Promise.all([claim(), claim(), claim()])).flat();
    assert.deepEqual(idsOf(claimed), [first]);
  });

  test('one that waits for a retry holds up those behind it, until it is given up', async () => {
    const webhook = await newWebhook({ ordering: 'strict' });
    const [first, second] = await newDeliveries(webhook, 2);
    const [claimed] = await claim();
    await queue.complete([outcomeOf(claimed!, retryAt(startMs + 5000))]);
    assert.deepEqual(await claim(startMs + 4999), []);
    const [again] = await claim(startMs + 5000);
    assert.equal(again!.id, first);
    await queue.complete([outcomeOf(again!, { state: 'failed', status: 500 })]);
    assert.deepEqual(idsOf(await claim(startMs + 5000)), [second]);
  });

  test('none for an endpoint that this process is already sending to, whatever the database says', async () => {
    const webhook = await newWebhook({ ordering: 'strict' });
    await newDeliveries(webhook, 1);
    const loads = new Map([[webhook, { inFlight: 1, oldestAt: startMs, waiting: 0 }]]);
    assert.deepEqual(await claim(startMs, { loads }), []);
  });
});

describe('complete', () => {
  test('writes the attempt and finishes the delivery', async () => {
    const webhook = await newWebhook();
    const [id] = await newDeliveries(webhook, 1);
    const [claimed] = await claim();
    await queue.complete([outcomeOf(claimed!, { finished_at: startMs + 7 })]);
    const row = await find(id!);
    assert.deepEqual([row.state, row.attempts, row.tried, row.finished_at], ['succeeded', 1, 1, startMs + 7]);
    assert.deepEqual([row.lease, row.lease_until], [null, 0]);
    const [attempt, ...more] = await attemptsOf(id!);
    const expected = {
      delivery_id: id,
      number: 1,
      at: startMs,
      duration_ms: 5,
      status: 200,
      error: null,
      answer: 'ok',
    };
    assert.deepEqual([{ ...attempt }, ...more], [expected]);
    assert.deepEqual(await claim(startMs + leaseMs), []);
  });

  test('a retry is due later, and counts the attempts', async () => {
    const webhook = await newWebhook();
    const [id] = await newDeliveries(webhook, 1);
    const [claimed] = await claim();
    const failure = { status: null, error: 'no answer', answer: null };
    await queue.complete([outcomeOf(claimed!, { ...retryAt(startMs + 5000), ...failure })]);
    assert.deepEqual(await claim(startMs + 4999), []);
    const [again] = await claim(startMs + 5000);
    assert.deepEqual([again!.attempts, again!.tried], [1, 1]);
    await queue.complete([outcomeOf(again!)]);
    const attempts = await attemptsOf(id!);
    assert.deepEqual(
      attempts.map(({ number, status, error, answer }) => [number, status, error, answer]),
      [
        [1, null, 'no answer', null],
        [2, 200, null, 'ok'],
      ],
    );
  });

  test('refuses an outcome whose lease another holds by now, and writes the others', async () => {
    const webhook = await newWebhook();
    const [lost, kept] = await newDeliveries(webhook, 2);
    const claimed = await claim();
    const [slow, fast] = [lost, kept].map((id) => claimed.find((one) => one.id === id)!);
    await db.updateTable('delivery').set({ lease_until: startMs }).where('id', '=', lost!).execute();
    const [taken] = await claim();
    assert.equal(taken!.id, lost);
    await queue.complete([outcomeOf(slow!), outcomeOf(fast!)]);
    assert.deepEqual([(await find(lost!)).state, (await find(lost!)).lease], ['pending', taken!.lease]);
    assert.deepEqual(await attemptsOf(lost!), []);
    assert.equal((await find(kept!)).state, 'succeeded');
    await queue.complete([outcomeOf(taken!)]);
    assert.equal((await find(lost!)).state, 'succeeded');
    await queue.complete([outcomeOf(taken!, { state: 'failed' })]);
    assert.equal((await find(lost!)).state, 'succeeded', 'a lease ends with its outcome');
    assert.equal((await attemptsOf(lost!)).length, 1);
  });
});

describe('release', () => {
  test('due again at once, as if it had never been claimed', async () => {
    const webhook = await newWebhook();
    const [id] = await newDeliveries(webhook, 1);
    const before = await find(id!);
    await queue.release(await claim());
    assert.deepEqual(await find(id!), before);
    assert.deepEqual(idsOf(await claim()), [id]);
    await queue.release([]);
  });

  test('leaves alone what another has leased by now', async () => {
    const webhook = await newWebhook();
    const [id] = await newDeliveries(webhook, 1);
    const lost = await claim(startMs);
    const [taken] = await claim(startMs + leaseMs);
    await queue.release(lost);
    assert.equal((await find(id!)).lease, taken!.lease);
  });

  // Elsewhere other processes may be sending: only time tells that one has crashed.
  test(`a start ${onPostgres ? 'waits for the leases of others' : 'ends every lease: there is one process'}`, async () => {
    const webhook = await newWebhook();
    const [id] = await newDeliveries(webhook, 1);
    await claim();
    await queue.recover(startMs, leaseMs);
    assert.deepEqual(idsOf(await claim()), onPostgres ? [] : [id]);
  });

  // There the clock of the database says when.
  test(`a start ${onPostgres ? 'changes no' : 'makes due what a clock that was ahead gave a'} time`, async () => {
    const hourMs = 3600_000;
    const webhook = await newWebhook();
    const [untried] = await newDeliveries(webhook, 1, { due_at: startMs + hourMs });
    const [retried, waiting] = await newDeliveries(webhook, 2, { due_at: startMs + 3 * hourMs });
    const tried = db.updateTable('delivery').set({ tried: 1 });
    await tried.where('id', 'in', [retried!, waiting!]).execute();
    await tried
      .set({ due_at: startMs + hourMs })
      .where('id', '=', waiting!)
      .execute();
    await queue.recover(startMs, 2 * hourMs);
    assert.deepEqual(idsOf(await claim()).sort(), onPostgres ? [] : [untried, retried].sort());
  });
});

describe('renew', () => {
  test('nobody else can claim it until the new end of the lease, and its outcome is written', async () => {
    const webhook = await newWebhook();
    const [renewed, other] = await newDeliveries(webhook, 2);
    const claimed = await claim(startMs);
    const held = claimed.find(({ id }) => id === renewed)!;
    await queue.renew([held], startMs + 3 * leaseMs);
    assert.deepEqual(idsOf(await claim(startMs + 2 * leaseMs)), [other]);
    await queue.complete([outcomeOf(held)]);
    assert.equal((await find(renewed!)).state, 'succeeded');
    await queue.renew([], startMs);
  });

  test('leaves alone what another has leased by now, what was released, and what has ended', async () => {
    const webhook = await newWebhook();
    const [lost, released, done] = await newDeliveries(webhook, 3);
    const claimed = await claim(startMs);
    const [first, second, third] = [lost, released, done].map((id) => claimed.find((one) => one.id === id)!);
    await queue.release([second!]);
    await queue.complete([outcomeOf(third!)]);
    const [taken] = await claim(startMs + leaseMs, { most: 2 });
    const before = await Promise.all([lost, released, done].map((id) => find(id!)));
    assert.equal(taken!.id, lost);
    await queue.renew([first!, second!, third!], startMs + 9 * leaseMs);
    assert.deepEqual(await Promise.all([lost, released, done].map((id) => find(id!))), before);
  });
});

describe('markHealth', () => {
  const healthOf = (id: string) =>
    db
      .selectFrom('webhook')
      .select(['state', 'failures', 'failing_since', 'probe_at', 'version'])
      .where('id', '=', id)
      .executeTakeFirstOrThrow();
  const round = (webhookId: string, more: object) => ({ webhookId, succeeded: 0, failed: 0, gone: false, ...more });

  test('failures add up, and a success clears them', async () => {
    const webhook = await newWebhook();
    assert.deepEqual(await queue.markHealth([round(webhook, { failed: 2 })], startMs, 0.5), []);
    const failing = { state: 'enabled', failures: 2, failing_since: startMs, probe_at: null, version: 1 };
    assert.deepEqual({ ...(await healthOf(webhook)) }, failing);
    await queue.markHealth([round(webhook, { succeeded: 1, failed: 1 })], startMs + 1, 0.5);
    assert.deepEqual({ ...(await healthOf(webhook)) }, { ...failing, failures: 0, failing_since: null });
  });

  test('410 disables, once', async () => {
    const webhook = await newWebhook();
    const gone = round(webhook, { failed: 1, gone: true });
    assert.deepEqual(await queue.markHealth([gone], startMs, 0.5), [webhook]);
    assert.deepEqual(await queue.markHealth([gone], startMs, 0.5), []);
    const { state, version } = await healthOf(webhook);
    assert.deepEqual([state, version], ['disabled', 2]);
  });
});
