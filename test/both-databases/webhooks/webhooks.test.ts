// What the API does with webhooks.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { Webhook } from 'standardwebhooks';
import { call } from '../../helpers/app.ts';
import type { Arrival } from '../../helpers/receiver.ts';
import { until } from '../../helpers/wait.ts';
import { deliveryWhen, emit, get, newProject, post, receive, register, setUpApp, t } from './webhooks-fixture.ts';

setUpApp();

describe('test, redeliver, rotate', () => {
  test('202 for a test, which arrives signed and is no event', async () => {
    const receiver = await receive();
    const project = await newProject();
    const { id, secret } = await register(receiver.url, project);
    const { status, body } = await post(`${id}/test`);
    assert.equal(status, 202);
    const [{ event, headers, body: bytes }] = (await receiver.has(1)) as [Arrival];
    assert.equal(event.type, 'webhook.test');
    assert.equal(event.id, body.event_id);
    assert.deepEqual(new Webhook(secret).verify(bytes, headers as Record<string, string>), event);
    assert.equal((await t.call('GET', `/v1/events/${event.id}`)).status, 404);
  });

  test('202 for a redelivery, with the same bytes and id', async () => {
    const receiver = await receive();
    const project = await newProject();
    const { id } = await register(receiver.url, project);
    await emit(project);
    const { id: dlv } = await deliveryWhen(id, ({ state }) => state === 'succeeded');
    assert.equal((await post(`${id}/deliveries/${dlv}/redeliver`)).status, 202);
    const [first, second] = await receiver.has(2);
    assert.equal(first!.body, second!.body);
    assert.equal(first!.headers['x-service-delivery'], second!.headers['x-service-delivery']);
    const again = await deliveryWhen(id, ({ state }) => state === 'succeeded');
    assert.equal(again.attempt_count, 2);
  });

  test('a rotated secret signs at once; the old one stays valid beside it for as long as asked', async () => {
    const receiver = await receive();
    const project = await newProject();
    const { id, secret: old } = await register(receiver.url, project);
    const verify = (secret: string, { body, headers }: Arrival) =>
      new Webhook(secret).verify(body, headers as Record<string, string>);
    const { body } = await post(`${id}/rotate-secret`);
    assert.notEqual(body.secret, old);
    await emit(project);
    const [first] = (await receiver.has(1)) as [Arrival];
    verify(old, first);
    verify(body.secret, first);
    const { body: later } = await post(`${id}/rotate-secret`, { overlap_s: 0 });
    await emit(project);
    const [, second] = (await receiver.has(2)) as [Arrival, Arrival];
    verify(later.secret, second);
    assert.throws(() => verify(old, second));
    assert.throws(() => verify(body.secret, second));
  });

  test('secrets are shown at create and rotate only, and sealed at rest', async () => {
    const project = await newProject();
    const { id, secret } = await register('http://127.0.0.1:9/', project);
    assert.match(secret, /^whsec_[A-Za-z0-9+/]{43}=$/);
    assert.ok(!JSON.stringify(await get(id)).includes('whsec_'));
    const row = await t.app.store.db.selectFrom('webhook').selectAll().where('id', '=', id).executeTakeFirstOrThrow();
    assert.ok(!JSON.stringify(row).includes(secret.slice(6)));
  });
});

describe('registration', () => {
  test('ETag and If-Match, PATCH and DELETE', async () => {
    const project = await newProject();
    const { id } = await register('http://127.0.0.1:9/a#b', project, { description: 'x' });
    const path = `/v1/webhooks/${id}`;
    const { headers, body } = await t.call('GET', path);
    assert.equal(body.url, 'http://127.0.0.1:9/a');
    const stale = { 'if-match': '"v99"' };
    assert.equal((await t.call('PATCH', path, { body: { description: 'y' }, headers: stale })).status, 412);
    const ok = await t.call('PATCH', path, {
      body: { description: null, events: ['alert.fired'] },
      headers: { 'if-match': headers.get('etag')! },
    });
    assert.deepEqual([ok.status, ok.body.description, ok.body.events], [200, null, ['alert.fired']]);
    assert.equal((await t.call('DELETE', path)).status, 204);
    assert.equal((await t.call('GET', path)).body.error.code, 'webhook_not_found');
    await until('the row to be gone', async () => {
      const row = await t.app.store.db.selectFrom('webhook').select('id').where('id', '=', id).executeTakeFirst();
      return row === undefined ? true : undefined;
    });
  });

  test('refusals: 400, 404, 422', async () => {
    const project = await newProject();
    const tryTo = async (body: object) => {
      const result = await t.call('POST', '/v1/webhooks', { body: { events: ['*'], project_id: project, ...body } });
      return [result.status, result.body.error?.code];
    };
    assert.deepEqual(await tryTo({ url: 'ftp://example.com/' }), [400, 'invalid_request']);
    assert.deepEqual(await tryTo({ url: 'http://user:pass@example.com/' }), [400, 'invalid_request']);
    assert.deepEqual(await tryTo({ url: 'http://127.0.0.1/', events: [] }), [400, 'invalid_request']);
    assert.deepEqual(await tryTo({ url: 'http://127.0.0.1/', events: ['x'] }), [400, 'invalid_request']);
    assert.deepEqual(await tryTo({ url: 'http://10.0.0.1/' }), [422, 'webhook_url_not_allowed']);
    const unknown = project.replace(/.$/, (last) => (last === '0' ? '1' : '0'));
    assert.deepEqual(await tryTo({ url: 'http://127.0.0.1/', project_id: unknown }), [404, 'project_not_found']);
  });

  test('403: subscribing needs events:read, for a new webhook and for another URL or other events', async () => {
    const project = await newProject();
    const own = await register('http://127.0.0.1:9/', project);
    const scopes = ['webhooks:read', 'webhooks:write'];
    const { token } = (await t.call('POST', '/v1/tokens', { body: { name: 'writer', scopes } })).body;
    const subscription = { url: 'http://127.0.0.1:9/', events: ['*'], project_id: project };
    for (const [method, path, body] of [
      ['POST', '/v1/webhooks', subscription],
      ['PATCH', `/v1/webhooks/${own.id}`, { url: 'http://127.0.0.1:9/mine' }],
      ['PATCH', `/v1/webhooks/${own.id}`, { events: ['*'] }],
    ] as const) {
      const answer = await call(t.url, method, path, { token, body });
      assert.deepEqual([answer.status, answer.body.error?.code], [403, 'insufficient_scope'], `${method} ${path}`);
      assert.deepEqual(answer.body.error.details, [{ path: 'scope', message: 'events:read' }]);
    }
    const paused = await call(t.url, 'PATCH', `/v1/webhooks/${own.id}`, { token, body: { state: 'paused' } });
    assert.equal(paused.status, 200);
  });

  test('a token bound to a project sees, makes and changes only what is of that project', async () => {
    const [mine, other] = [await newProject(), await newProject()];
    const scopes = ['webhooks:read', 'webhooks:write', 'events:read'];
    const { body } = await t.call('POST', '/v1/tokens', { body: { name: 'bound', scopes, project_ids: [mine] } });
    const { token } = body;
    const as = (method: string, path: string, more?: object) =>
      call(t.url, method, `/v1${path}`, { token, body: more });
    const [own, foreign] = [await register('http://127.0.0.1:9/', mine), await register('http://127.0.0.1:9/', other)];
    const { data } = (await as('GET', '/webhooks')).body;
    assert.deepEqual(
      data.map(({ id }: { id: string }) => id),
      [own.id],
    );
    for (const [method, path] of [
      ['GET', ''],
      ['PATCH', ''],
      ['DELETE', ''],
      ['GET', '/deliveries'],
      ['POST', '/rotate-secret'],
      ['POST', '/test'],
    ] as const) {
      const result = await as(method, `/webhooks/${foreign.id}${path}`, method === 'PATCH' ? {} : undefined);
      assert.deepEqual([result.status, result.body.error?.code], [404, 'webhook_not_found'], `${method} ${path}`);
    }
    const wide = await as('POST', '/webhooks', { url: 'http://127.0.0.1:9/', events: ['*'] });
    assert.equal(wide.body.error.code, 'insufficient_scope');
    const narrow = await as('POST', '/webhooks', { url: 'http://127.0.0.1:9/', events: ['*'], project_id: mine });
    assert.equal(narrow.status, 201);
    const { body: weak } = await t.call('POST', '/v1/tokens', { body: { name: 'weak', scopes: ['webhooks:read'] } });
    const denied = await call(t.url, 'POST', `/v1/webhooks/${own.id}/test`, { token: weak.token });
    assert.equal(denied.status, 403);
  });
});
