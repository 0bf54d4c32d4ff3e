// The typed client against the real service.
import assert from 'node:assert/strict';
import { request as ask, createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, test } from 'node:test';
import { createClient, type Sluice, SluiceError, verifySignature, verifyWebhook } from '../../src/client/index.ts';
import { adminToken } from '../helpers/app.ts';
import { Receiver } from '../helpers/receiver.ts';
import { sharedApp } from '../helpers/shared-app.ts';
import { until } from '../helpers/wait.ts';
import { collect, deployWith, newShopOf } from './client-fixture.ts';

let sluice: Sluice;
const t = sharedApp({ tokenLimit: 1_000_000 }, () => {
  sluice = createClient({ url: t.url, token: adminToken });
});

const codeOf = (promise: Promise<unknown>): Promise<string> =>
  promise.then(
    () => 'no error',
    (error) => (error instanceof SluiceError ? error.code : String(error)),
  );

const newShop = () => newShopOf(sluice);
const deploy = (project: string, image: string, more?: object) => deployWith(sluice, project, image, more);

describe('resources', () => {
  test('projects and environments: created, read, changed with If-Match, deleted', async () => {
    const project = await sluice.projects.create({ name: 'Harbour shop', labels: ['a'] });
    let etag = '';
    const read = await sluice.projects.get(project.id, {
      onResponse: ({ headers }) => {
        etag = headers.get('etag')!;
      },
    });
    assert.deepEqual(read, project);
    const renamed = await sluice.projects.update(project.id, { name: 'Quay shop' }, { ifMatch: etag });
    assert.equal(renamed.name, 'Quay shop');
    assert.equal(
      await codeOf(sluice.projects.update(project.id, { name: 'X' }, { ifMatch: etag })),
      'version_conflict',
    );

    await sluice.environments.create(project.id, { name: 'staging', replicas: 2 });
    assert.equal((await sluice.environments.get(project.id, 'staging')).replicas, 2);
    const names = (await collect(sluice.environments.list(project.id))).map(({ name }) => name);
    assert.deepEqual(names.toSorted(), ['production', 'staging']);
    assert.equal(await sluice.environments.delete(project.id, 'staging'), undefined);
    assert.equal(await codeOf(sluice.environments.get(project.id, 'staging')), 'environment_not_found');
    await sluice.projects.delete(project.id);
    const error = await sluice.projects.get(project.id).catch((reason) => reason);
    assert.equal(error.code, 'project_not_found');
    assert.equal(error.status, 404);
    assert.match(error.requestId, /^req_/);
    assert.match(error.docs, /docs\/errors#project_not_found$/);
  });

  test('deployments: a canary is watched, paused, promoted; its logs and revisions; a rollback', async () => {
    const project = await newShop();
    const states: string[] = [];
    const first = await deploy(project, 'shop:1');
    const ended = await sluice.waitFor(project, first.id, {
      onChange: ({ state }) => states.push(state),
      intervalMs: 50,
    });
    assert.equal(ended.state, 'succeeded');
    assert.equal(states.at(-1), 'succeeded');

    await sluice.environments.update(project, 'production', { canary: { advance: 'manual' } });
    const canary = await deploy(project, 'shop:2', { strategy: 'canary', canary_percent: 20 });
    const seen = await sluice.waitFor(project, canary.id, { until: ({ state }) => state === 'canary', intervalMs: 50 });
    assert.equal(seen.canary?.percent, 20);
    const waiting = sluice.waitFor(project, canary.id, { timeoutMs: 150, intervalMs: 50 });
    await assert.rejects(waiting, { code: 'timeout', message: /still canary/ });
    assert.equal((await sluice.deployments.pause(project, canary.id)).canary?.phase, 'paused');
    await sluice.deployments.resume(project, canary.id);
    await sluice.deployments.promote(project, canary.id);
    assert.equal((await sluice.waitFor(project, canary.id, { intervalMs: 50 })).state, 'succeeded');
    assert.ok(Array.isArray((await sluice.deployments.logs(project, canary.id, { tail: 5 })).data));
    const revisions = await collect(sluice.revisions.list(project, 'production'));
    assert.deepEqual(
      revisions.map(({ id }) => id),
      ['r2', 'r1'],
    );
    assert.equal((await sluice.revisions.get(project, 'production', 'r1')).state, 'superseded');

    const back = await sluice.environments.rollback(project, 'production');
    assert.equal(back.kind, 'rollback');
    assert.equal((await sluice.waitFor(project, back.id, { intervalMs: 50 })).image, 'shop:1');
    const third = await deploy(project, 'shop:3', { strategy: 'canary' });
    await sluice.waitFor(project, third.id, { until: ({ state }) => state === 'canary', intervalMs: 50 });
    await sluice.deployments.abort(project, third.id);
    assert.equal((await sluice.waitFor(project, third.id, { intervalMs: 50 })).state, 'canceled');
    assert.equal((await collect(sluice.deployments.list(project, { state: 'succeeded' }))).length, 3);
  });

  test('alert rules, alerts from elsewhere, measurements', async () => {
    const project = await newShop();
    const rule = await sluice.alertRules.create(project, {
      environment: 'production',
      name: 'disk',
      metric: 'external',
      severity: 'critical',
    });
    assert.equal((await sluice.alertRules.update(project, rule.id, { severity: 'info' })).severity, 'info');
    assert.equal((await sluice.alertRules.get(project, rule.id)).severity, 'info');
    assert.ok((await collect(sluice.alertRules.list(project, { environment: 'production' }))).length >= 3);
    const message = {
      version: '4',
      status: 'firing' as const,
      alerts: [
        {
          status: 'firing' as const,
          labels: { alertname: 'disk' },
          annotations: { summary: 'nearly full' },
          startsAt: new Date().toISOString(),
          endsAt: '0001-01-01T00:00:00Z',
          fingerprint: 'ab12',
        },
      ],
    };
    const receipt = await sluice.alerts.alertmanager(project, message, { environment: 'production' });
    assert.deepEqual(receipt, { fired: 1, resolved: 0 });
    const [alert] = await collect(sluice.alerts.list(project, { state: 'firing' }));
    assert.equal(alert?.name, 'disk');
    assert.deepEqual(await sluice.alerts.get(project, alert.id), alert);
    await sluice.alertRules.delete(project, rule.id);
    assert.equal(await codeOf(sluice.alertRules.get(project, rule.id)), 'alert_rule_not_found');
    const metrics = await sluice.metrics.get(project, { environment: 'production', step_s: 60 });
    assert.deepEqual([metrics.step_s, metrics.series], [60, []]);
  });

  test('domains: added, certified, renewed, removed', async () => {
    const project = await newShop();
    const body = { hostname: 'shop.example', environment: 'production' };
    const { id } = await sluice.domains.create(project, body);
    const first = await until('the certificate', async () => {
      const domain = await sluice.domains.get(project, id);
      return domain.state === 'active' ? domain : undefined;
    });
    await sluice.domains.renew(project, id);
    await until('another certificate', async () => {
      const { certificate } = await sluice.domains.get(project, id);
      return certificate?.serial === first.certificate?.serial ? undefined : true;
    });
    assert.ok(['no error', 'domain_not_pointed'].includes(await codeOf(sluice.domains.verify(project, id))));
    assert.equal((await collect(sluice.domains.list(project)))[0]?.hostname, 'shop.example');
    await sluice.domains.delete(project, id);
    assert.equal(await codeOf(sluice.domains.get(project, id)), 'domain_not_found');
  });

  test('tokens, regions, the audit log, the document', async () => {
    const made = await sluice.tokens.create({ name: 'reader', scopes: ['projects:read'] });
    const reader = createClient({ url: `${t.url}/v1/`, token: `${made.token}\n` });
    assert.deepEqual((await reader.token.get()).id, made.id);
    assert.equal(await codeOf(reader.projects.create({ name: 'x' })), 'insufficient_scope');
    assert.ok((await collect(sluice.tokens.list())).some(({ id }) => id === made.id));
    await sluice.tokens.revoke(made.id);
    assert.notEqual((await sluice.tokens.get(made.id)).revoked_at, null);
    assert.equal(await codeOf(reader.token.get()), 'token_revoked');
    assert.deepEqual(
      (await collect(sluice.regions.list())).map(({ name }) => name),
      ['local'],
    );
    assert.equal((await sluice.auditLog.list({ limit: 1 }).page()).data[0]?.action, 'tokens.revoke');
    const open = createClient({ url: t.url });
    assert.equal((await open.openapi.get()).openapi, '3.1.0');
    assert.equal(await codeOf(open.projects.list().page()), 'token_missing');
  });

  test('a list is read over its pages, each item once, and can be left early', async () => {
    const project = await newShop();
    for (let n = 0; n < 7; n++) await sluice.environments.create(project, { name: `e${n}` });
    let requests = 0;
    const counting: typeof fetch = (input, init) => {
      requests++;
      return fetch(input, init);
    };
    const { environments } = createClient({ url: t.url, token: adminToken, fetch: counting });
    const list = environments.list(project, { limit: 3 });
    assert.equal(requests, 0);
    const names = (await collect(list)).map(({ name }) => name);
    assert.deepEqual(names, ['e6', 'e5', 'e4', 'e3', 'e2', 'e1', 'e0', 'production']);
    assert.equal(requests, 3);
    const first = await list.page();
    assert.equal(first.page.has_more, true);
    assert.equal((await list.page(first.page.next)).data[0]?.name, 'e3');
    requests = 0;
    for await (const _ of list) break;
    assert.equal(requests, 1);
    await assert.rejects(collect(environments.list(project, { cursor: 'nonsense' })), { code: 'invalid_cursor' });
  });
});

test('a create whose answer was lost is repeated and makes one project', async () => {
  let lost = 0;
  // Carries every request to the service, and hangs up on the first answer.
  const proxy = createServer((request, response) => {
    const { method, headers } = request;
    const onward = ask(t.url + request.url, { method, headers }, (answer) => {
      if (lost++ === 0) return answer.resume().on('end', () => request.socket.destroy());
      response.writeHead(answer.statusCode!, answer.headers);
      return answer.pipe(response);
    });
    request.pipe(onward);
  });
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
  try {
    const url = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`;
    let replayed: string | null = null;
    const made = await createClient({ url, token: adminToken }).projects.create(
      { name: 'Only once' },
      { onResponse: ({ headers }) => (replayed = headers.get('idempotency-replayed')) },
    );
    assert.equal(replayed, 'true');
    const named = (await collect(sluice.projects.list())).filter(({ name }) => name === 'Only once');
    assert.deepEqual(
      named.map(({ id }) => id),
      [made.id],
    );
  } finally {
    proxy.close();
    proxy.closeAllConnections();
  }
});

test('webhooks: a real delivery is genuine with its secret only; redelivered, replayed, rotated', async () => {
  const receiver = await Receiver.open();
  try {
    const { secret, id } = await sluice.webhooks.create({ url: receiver.url, events: ['*'] });
    const sent = await sluice.webhooks.test(id);
    const [arrival] = await receiver.has(1);
    const { body, headers } = arrival!;
    const signature = headers['x-service-signature'] as string;
    assert.equal(await verifySignature(body, signature, secret), true);
    assert.equal(await verifySignature(Buffer.from(body), signature, secret), true);
    assert.equal(await verifySignature(`${body} `, signature, secret), false);
    assert.equal(await verifyWebhook(body, headers, secret), true);
    assert.equal(await verifyWebhook(body, headers, secret, { now: Date.now() + 301_000 }), false);

    await until('the delivery to count', async () =>
      (await sluice.deliveries.get(id, sent.id)).state === 'succeeded' ? true : undefined,
    );
    await sluice.deliveries.redeliver(id, sent.id);
    await receiver.has(2);
    assert.deepEqual(
      (await collect(sluice.deliveries.list(id))).map((each) => each.id),
      [sent.id],
    );
    const { scheduled } = await sluice.webhooks.replay(id, { since: new Date(Date.now() - 1000).toISOString() });
    assert.equal(scheduled, 0);
    const rotated = await sluice.webhooks.rotateSecret(id, { overlap_s: 60 });
    await sluice.webhooks.test(id);
    const third = (await receiver.has(3))[2]!;
    for (const each of [secret, rotated.secret])
      assert.equal(await verifyWebhook(third.body, third.headers, each), true);
    assert.equal((await sluice.webhooks.update(id, { state: 'paused' })).state, 'paused');
    assert.equal(await codeOf(sluice.webhooks.test(id)), 'webhook_not_enabled');
    assert.ok((await collect(sluice.webhooks.list())).some((each) => each.id === id));
    await sluice.webhooks.delete(id);
    assert.equal(await codeOf(sluice.webhooks.get(id)), 'webhook_not_found');
  } finally {
    await receiver.close();
  }
});
