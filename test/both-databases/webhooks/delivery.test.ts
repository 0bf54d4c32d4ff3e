// How events reach receivers: bytes, signatures, retries, the breaker, order.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { test } from 'node:test';
import { Webhook } from 'standardwebhooks';
import { type Arrival, answering } from '../../helpers/receiver.ts';
import { Shop } from '../../helpers/shop.ts';
import { until } from '../../helpers/wait.ts';
import { deliveryWhen, emit, get, newProject, post, receive, register, setUpApp, t } from './webhooks-fixture.ts';

setUpApp();

test('the events of a deployment arrive with bytes, signatures and headers as the contract says', async () => {
  const receiver = await receive();
  const shop = await Shop.open(t.url);
  const { secret } = await register(receiver.url, shop.project);
  const { id } = await shop.released('registry.example/shop:1', { note: 'Käse 🧀' });
  const [created, succeeded] = await receiver.has(2);
  for (const [arrival, type] of [
    [created, 'deployment.created'],
    [succeeded, 'deployment.succeeded'],
  ] as [Arrival, string][]) {
    const { headers, event, body } = arrival;
    assert.equal(event.type, type);
    assert.equal(event.data.id, id);
    assert.equal(event.project_id, shop.project);
    assert.equal(headers['x-service-event'], type);
    assert.match(headers['x-service-delivery'] as string, /^dlv_/);
    assert.equal(headers['webhook-id'], event.id);
    assert.equal(headers['content-type'], 'application/json; charset=utf-8');
    const key = `hexkey:${Buffer.from(secret).toString('hex')}`;
    const printed = execFileSync('openssl', ['dgst', '-sha256', '-mac', 'HMAC', '-macopt', key], { input: body });
    assert.equal(headers['x-service-signature'], printed.toString().trim().split(' ').at(-1));
    assert.deepEqual(new Webhook(secret).verify(body, headers as Record<string, string>), event);
    const shown = await t.call('GET', `/v1/events/${event.id}`);
    assert.deepEqual(shown.body, event);
    const stored = await t.app.store.db
      .selectFrom('event')
      .select('body')
      .where('id', '=', event.id)
      .executeTakeFirstOrThrow();
    assert.equal(stored.body, body);
  }
  assert.deepEqual([created!.event.sequence, succeeded!.event.sequence], [1, 2]);
});

test('only 2xx is success: what fails is sent again, with the same bytes, and every attempt is kept', async () => {
  let count = 0;
  const receiver = await receive((arrival, response) => {
    count++;
    if (count === 1) return void response.writeHead(500).end('first\0no');
    if (count === 2) return void response.writeHead(302, { location: receiver.url }).end();
    if (count === 3) return void response.socket!.destroy();
    answering(204)(arrival, response);
  });
  const project = await newProject();
  const { id } = await register(receiver.url, project);
  await emit(project);
  const { id: dlv } = await deliveryWhen(id, ({ state }) => state === 'succeeded');
  const detail = await get(`${id}/deliveries/${dlv}`);
  assert.deepEqual(
    detail.attempts.map((a: { number: number; status: number | null }) => [a.number, a.status]),
    [
      [1, 500],
      [2, 302],
      [3, null],
      [4, 204],
    ],
  );
  assert.equal(detail.attempts[0].answer, 'first\ufffdno');
  assert.notEqual(detail.attempts[2].error, null);
  assert.equal(detail.attempt_count, 4);
  assert.equal(new Set(receiver.arrivals.map(({ body }) => body)).size, 1);
  assert.equal(new Set(receiver.arrivals.map(({ headers }) => headers['x-service-signature'])).size, 1);
  assert.equal((await get(id)).failing_since, null);
});

test('a receiver that hangs is cut off; a long answer is kept only in part; then it is given up', async () => {
  const hanging = await receive(() => {});
  const talking = await receive((_arrival, response) => void response.writeHead(500).end('x'.repeat(100_000)));
  const project = await newProject();
  const [h, l] = [await register(hanging.url, project), await register(talking.url, project)];
  await emit(project);
  const { id: long } = await deliveryWhen(l.id, ({ state }) => state === 'failed');
  const { attempts } = await get(`${l.id}/deliveries/${long}`);
  assert.equal(attempts.length, 7);
  for (const { answer } of attempts) assert.equal(answer.length, 16 * 1024);
  const { id: hung } = await deliveryWhen(h.id, ({ attempt_count }) => attempt_count >= 1);
  const [first] = (await get(`${h.id}/deliveries/${hung}`)).attempts;
  assert.equal(first.status, null);
  assert.match(first.error, /no answer within 1500 ms/);
  assert.ok(first.duration_ms >= 1400 && first.duration_ms < 15_000, String(first.duration_ms));
  await t.call('DELETE', `/v1/webhooks/${h.id}`);
});

test('Retry-After is honoured', async () => {
  const receiver = await receive(answering(503, { 'retry-after': '3600' }));
  const project = await newProject();
  const { id } = await register(receiver.url, project);
  await emit(project);
  const { next_attempt_at } = await deliveryWhen(id, ({ attempt_count }) => attempt_count === 1);
  const inS = (Date.parse(next_attempt_at) - Date.now()) / 1000;
  assert.ok(inS > 3500 && inS <= 3600, String(inS));
});

test('410 disables, what is pending is given up, and replay makes up for all of it', async () => {
  const receiver = await receive(answering(503, { 'retry-after': '3600' }));
  const project = await newProject();
  const since = new Date().toISOString();
  const { id } = await register(receiver.url, project);
  await emit(project);
  await deliveryWhen(id, ({ attempt_count }) => attempt_count === 1);
  receiver.behave = answering(410);
  await emit(project);
  await until('disabled', async () => ((await get(id)).state === 'disabled' ? true : undefined));
  assert.match((await get(id)).disabled_reason, /410/);
  await deliveryWhen(id, ({ state }) => state === 'failed');
  await emit(project); // a disabled webhook gets no delivery
  assert.equal((await post(`${id}/replay`, { since })).body.error.code, 'webhook_not_enabled');
  assert.equal((await post(`${id}/test`)).body.error.code, 'webhook_not_enabled');

  receiver.behave = answering(200);
  receiver.arrivals.length = 0;
  const enabled = await t.call('PATCH', `/v1/webhooks/${id}`, { body: { state: 'enabled' } });
  assert.deepEqual([enabled.body.state, enabled.body.disabled_reason], ['enabled', null]);
  assert.deepEqual((await post(`${id}/replay`, { since })).body, { scheduled: 2, has_more: false });
  await receiver.has(2);
  assert.deepEqual((await post(`${id}/replay`, { since, only: 'missing' })).body, { scheduled: 1, has_more: false });
  await receiver.has(3);
  assert.deepEqual(receiver.arrivals.map(({ event }) => event.sequence).sort(), [1, 2, 3]);
  await deliveryWhen(id, ({ state }) => state === 'succeeded');
  assert.deepEqual((await post(`${id}/replay`, { since, only: 'missing' })).body, { scheduled: 0, has_more: false });
});

test('the breaker opens after ten failures in a row and a probe that succeeds closes it', async () => {
  const receiver = await receive(answering(500));
  const project = await newProject();
  const { id } = await register(receiver.url, project);
  for (let n = 0; n < 4; n++) await emit(project);
  const open = await until('the breaker', async () => {
    const webhook = await get(id);
    return webhook.probe_at === null ? undefined : webhook;
  });
  assert.equal(open.state, 'enabled');
  assert.ok(Date.parse(open.probe_at) > Date.now());
  receiver.behave = answering(200);
  const before = receiver.arrivals.length;
  await t.app.store.db.updateTable('webhook').set({ probe_at: Date.now() }).where('id', '=', id).execute();
  await deliveryWhen(id, ({ state }) => state !== 'pending');
  assert.ok(receiver.arrivals.length > before);
  assert.deepEqual([(await get(id)).probe_at, (await get(id)).failing_since], [null, null]);
});

test('five days of failing disable it', async () => {
  const receiver = await receive(answering(500));
  const project = await newProject();
  const { id } = await register(receiver.url, project);
  const longAgo = Date.now() - 5 * 24 * 3600_000 - 1000;
  await t.app.store.db
    .updateTable('webhook')
    .set({ failures: 3, failing_since: longAgo })
    .where('id', '=', id)
    .execute();
  await emit(project);
  const disabled = await until('disabled', async () => {
    const webhook = await get(id);
    return webhook.state === 'disabled' ? webhook : undefined;
  });
  assert.match(disabled.disabled_reason, /five days/);
  await deliveryWhen(id, ({ state }) => state === 'failed');
});

test('strict order: one at a time, in sequence, also past failures; without it they overtake', async () => {
  let flying = 0;
  let most = 0;
  let count = 0;
  const receiver = await receive((arrival, response) => {
    flying++;
    most = Math.max(most, flying);
    setTimeout(() => {
      flying--;
      answering(++count % 3 === 0 ? 500 : 200)(arrival, response);
    }, 5);
  });
  const project = await newProject();
  const { id } = await register(receiver.url, project, { ordering: 'strict' });
  await Promise.all(Array.from({ length: 20 }, () => emit(project)));
  await deliveryWhen(id, ({ state }) => state === 'succeeded');
  const order = receiver.arrivals.map(({ event }) => event.sequence);
  assert.deepEqual(
    order,
    order.toSorted((a, b) => a - b),
  );
  assert.equal(new Set(order).size, 20);
  assert.ok(order.length > 20);
  assert.equal(most, 1);
});

test('connections are kept and used again', async () => {
  const receiver = await receive();
  const project = await newProject();
  await register(receiver.url, project);
  for (let n = 1; n <= 10; n++) {
    await emit(project);
    await receiver.has(n);
  }
  assert.ok(receiver.connections <= 3, String(receiver.connections));
});

test('a webhook receives the events it subscribed to and no others', async () => {
  const [all, some, other] = [await receive(), await receive(), await receive()];
  const [project, elsewhere] = [await newProject(), await newProject()];
  await register(all.url, project);
  await register(some.url, project, { events: ['alert.resolved', 'deployment.created'] });
  await register(other.url, elsewhere);
  await emit(project, 'alert.fired');
  await emit(project, 'alert.resolved');
  await emit(elsewhere, 'alert.fired');
  await Promise.all([all.has(2), some.has(1), other.has(1)]);
  assert.deepEqual(
    some.arrivals.map(({ event }) => event.type),
    ['alert.resolved'],
  );
  assert.deepEqual(
    other.arrivals.map(({ event }) => event.project_id),
    [elsewhere],
  );
});

test('a paused one keeps its deliveries until it is enabled', async () => {
  const receiver = await receive();
  const project = await newProject();
  const { id } = await register(receiver.url, project);
  await t.call('PATCH', `/v1/webhooks/${id}`, { body: { state: 'paused' } });
  await emit(project);
  const other = await receive();
  await register(other.url, project);
  await emit(project);
  await other.has(1); // by now the paused one would have been sent too
  assert.equal(receiver.arrivals.length, 0);
  await t.call('PATCH', `/v1/webhooks/${id}`, { body: { state: 'enabled' } });
  await receiver.has(2);
});
