// From a failing revision to a signed webhook, in real time: the router measures, the watcher looks, the dispatcher sends.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { type App, createApp } from '../../../src/app.ts';
import { readConfig } from '../../../src/config.ts';
import type { Db } from '../../../src/db/database.ts';
import { signatureOf } from '../../../src/webhooks/signed-request.ts';
import { alertmanagerMessage } from '../../helpers/alertmanager.ts';
import { call, isolatedEnv, onPostgres } from '../../helpers/app.ts';
import { type Arrival, Receiver } from '../../helpers/receiver.ts';
import { startService } from '../../helpers/service.ts';
import { sharedApp } from '../../helpers/shared-app.ts';
import { Shop } from '../../helpers/shop.ts';
import { until } from '../../helpers/wait.ts';

const image = (tag: number) => `registry.example/shop:${tag}`;
const failing = (rate: string | null) => ({ variables: { STANDIN_ERROR_RATE: rate } });
const windowS = 10;
const limitMs = (windowS + 15) * 1000;
/** As the default rule, but over a window that a test can wait for. */
const shorten = { window_s: windowS };

async function ruleNamed(shop: Shop, name: string): Promise<{ id: string }> {
  const { data } = (await shop.api('GET', '/alert-rules')).body;
  return data.find((rule: { name: string }) => rule.name === name);
}

async function change(shop: Shop, name: string, body: object): Promise<void> {
  const { status } = await shop.api('PATCH', `/alert-rules/${(await ruleNamed(shop, name)).id}`, body);
  assert.equal(status, 200);
}

/** Sends alerts to the receiver. */
async function subscribe(url: string, receiver: Receiver): Promise<{ id: string; secret: string }> {
  const body = { url: receiver.url, events: ['alert.fired', 'alert.resolved'] };
  return (await call(url, 'POST', '/v1/webhooks', { body })).body;
}

/** Waits until the deliveries are stored as succeeded: from then on, they are not sent again. */
async function settled(url: string, webhook: { id: string }, count: number): Promise<void> {
  await until('the deliveries to succeed', async () => {
    const { data } = (await call(url, 'GET', `/v1/webhooks/${webhook.id}/deliveries?state=succeeded`)).body;
    return data.length >= count ? true : undefined;
  });
}

function assertOnceEach(arrivals: Arrival[], secret: string): void {
  assert.deepEqual(
    arrivals.map(({ event }) => event.type),
    ['alert.fired', 'alert.resolved'],
  );
  for (const { headers, body } of arrivals) assert.equal(headers['x-service-signature'], signatureOf(secret, body));
  const [fired, resolved] = arrivals.map(({ event }) => event.data);
  assert.deepEqual([fired.state, resolved.state], ['firing', 'resolved']);
  assert.deepEqual({ ...resolved, state: 'firing', resolved_at: null }, fired, 'the same incident');
}

/** Adds a rule whose condition already holds, and waits for its alert: the watcher has looked at all rules since. */
async function watcherLooks(shop: Shop, receiver: Receiver, name: string): Promise<void> {
  const rule = { metric: 'healthy_instances', comparator: 'gt', threshold: 0 };
  await shop.api('POST', '/alert-rules', { environment: 'production', name, ...rule });
  await until(`the alert ${name}`, () => receiver.arrivals.some(({ event }) => event.data.name === name));
}

/** Adds a replica and waits until it is healthy: the reconciler has looked at the deployment since. */
async function reconcilerLooks(db: Db, shop: Shop): Promise<void> {
  await shop.set({ replicas: 2 });
  await until('another healthy instance', async () => {
    const query = db.selectFrom('instance').select('id').where('project_id', '=', shop.project);
    return (await query.where('revision', '=', 1).where('state', '=', 'healthy').execute()).length === 2;
  });
}

/** Visits without pause; some of them fail, and are meant to. */
async function underLoad<T>(shop: Shop, work: () => Promise<T>): Promise<T> {
  const load = shop.load(2);
  try {
    return await work();
  } finally {
    await load.stop();
  }
}

describe('one process', () => {
  const t = sharedApp({ tokenLimit: 1_000_000 });

  test('a revision that begins to fail, and its end: one signed webhook each, within window + 15 s', async () => {
    const shop = await Shop.open(t.url);
    await change(shop, 'Errors', shorten);
    await shop.released(image(1));
    await shop.set(failing('0.5'));
    const receiver = await Receiver.open();
    const { secret } = await subscribe(t.url, receiver);
    await underLoad(shop, async () => {
      const { id } = await shop.deploy(image(2));
      await until('a failing answer', async () => ((await shop.visit()).status === 500 ? true : undefined));
      const beganAt = Date.now();
      await receiver.has(1, limitMs);
      assert.ok(Date.now() - beganAt <= limitMs);
      const [{ event }] = receiver.arrivals as [Arrival];
      assert.deepEqual([event.data.name, event.data.revision, event.project_id], ['Errors', 'r2', shop.project]);
      await shop.reaches(id, 'succeeded');
      const { body } = await shop.api('POST', '/environments/production/rollback', {});
      await shop.reaches(body.id, 'succeeded');
      await receiver.has(2, limitMs);
    });
    const looks = ['First look', 'Second look'];
    for (const name of looks) await watcherLooks(shop, receiver, name);
    assertOnceEach(
      receiver.arrivals.filter(({ event }) => !looks.includes(event.data.name)),
      secret,
    );
    await receiver.close();
  });

  test('/metrics has the same figures, and a series for every routed revision', async () => {
    const shop = await Shop.open(t.url);
    await shop.released(image(1));
    for (let i = 0; i < 20; i++) await shop.visit();
    const labels = `project="${shop.project}",environment="production"`;
    const wanted = [
      `sluice_requests_total{${labels},revision="r1"} 20`,
      `sluice_request_errors_total{${labels},revision="r1"} 0`,
      `sluice_request_duration_seconds_bucket{${labels},revision="r1",le="+Inf"} 20`,
      `sluice_request_duration_seconds_count{${labels},revision="r1"} 20`,
      `sluice_healthy_instances{${labels}} 1`,
    ];
    const text = await until('the figures', async () => {
      const { body } = await t.call('GET', '/metrics', { token: null });
      return wanted.every((line) => body.split('\n').includes(line)) ? (body as string) : undefined;
    });
    assert.match(text, /^sluice_alerts_firing\{severity="critical"\} \d+$/m);
    assert.match(text, /^# TYPE sluice_certificate_not_after_timestamp_seconds gauge$/m);
    assert.match(text, /^sluice_http_request_duration_seconds_count/m);
    for (const line of text.split('\n').filter((line) => line !== '')) {
      assert.match(line, /^(#.*|[a-z0-9_]+(\{([a-z_]+="[^"\n]*",?)+\})? [-+.\dA-Za-z]+)$/);
    }
  });

  test('an alert on what the router measured aborts a canary', async () => {
    const shop = await Shop.open(t.url, { canary: { bake_s: 120, min_requests: 10 } });
    await shop.api('POST', '/alert-rules', {
      ...{ environment: 'production', name: 'Strict', metric: 'error_rate', comparator: 'gt', threshold: 0.001 },
      ...{ window_s: windowS, on_canary: 'abort' },
    });
    await shop.released(image(1));
    await shop.set(failing('0.2'));
    const { id } = await shop.deploy(image(2), { strategy: 'canary', canary_percent: 50 });
    await shop.reaches(id, 'canary');
    const cookie = await until('a visitor of the canary', async () => {
      const visit = await shop.visit();
      return visit.revision === 'r2' && visit.cookie;
    });
    // Without visitors of the stable revision the analysis minds only what fails more than half of its requests.
    const failed = await until('it to be undone', async () => {
      await shop.visit(cookie);
      const deployment = await shop.deployment(id);
      return deployment.state === 'failed' && deployment;
    });
    assert.equal(failed.failure!.code, 'alert_fired');
    assert.match(failed.failure!.message, /^The alert (Strict|Errors) fired: The error rate of r2 is /);
    assert.deepEqual((await shop.environment()).traffic, [{ revision: 'r1', percent: 100 }]);
    const { body } = await t.call('GET', `/v1/events?project_id=${shop.project}&type=revision.rolled_back`);
    assert.deepEqual(
      body.data.map(({ data }: { data: { id: string; cause: string } }) => [data.id, data.cause]),
      [['r2', 'alert']],
    );
  });

  test('an alert of Alertmanager aborts a canary if its rule says so; alerts that fired before the canary do not', async () => {
    const shop = await Shop.open(t.url, { auto_rollback: false, canary: { bake_s: 120 } });
    await shop.released(image(1));
    const tell = async (alert: object) => {
      const { status, body } = await shop.api('POST', '/alerts/alertmanager', alertmanagerMessage(alert));
      assert.deepEqual([status, body], [200, { fired: 1, resolved: 0 }]);
    };
    await tell({ fingerprint: 'a1' });
    await change(shop, 'DiskFull', { on_canary: 'abort' });
    const { id } = await shop.deploy(image(2), { strategy: 'canary' });
    await shop.reaches(id, 'canary');
    await tell({ labels: { alertname: 'DiskFull', revision: 'r1' }, fingerprint: 'b2' });
    await tell({ labels: { alertname: 'Other' }, fingerprint: 'c3' });
    await reconcilerLooks(t.app.store.db, shop);
    assert.equal((await shop.deployment(id)).state, 'canary');
    await tell({ annotations: { summary: 'It burns.' }, fingerprint: 'd4' });
    const failed = await shop.reaches(id, 'failed');
    assert.deepEqual(
      [failed.failure!.code, failed.failure!.message],
      ['alert_fired', 'The alert DiskFull fired: It burns.'],
    );
  });
});

test('killed between fired and resolved: still one event each, only later', async () => {
  const isolated = await isolatedEnv();
  const receiver = await Receiver.open();
  const first = startService(isolated.env);
  const url = await first.url;
  const shop = await Shop.open(url, failing('1'));
  await change(shop, 'Errors', shorten);
  await change(shop, 'Instances', { enabled: false });
  const webhook = await subscribe(url, receiver);
  await shop.released(image(1));
  await underLoad(shop, () => receiver.has(1, limitMs));
  await settled(url, webhook, 1);
  first.killAll();
  await first.exited;

  const second = startService(isolated.env);
  const there = await Shop.at(await second.url, shop.project);
  // It still fails, which must not fire a second alert.
  await underLoad(there, async () => {
    await until('it to fail again', async () => ((await there.visit()).status === 500 ? true : undefined), 40_000);
    await there.set(failing(null));
    await there.released(image(2));
    await receiver.has(2, 60_000);
  });
  await settled(there.url, webhook, 2);
  second.killAll();
  await second.exited;
  const third = startService(isolated.env);
  await third.url;
  const { data } = (await call(await third.url, 'GET', `/v1/projects/${shop.project}/alerts`)).body;
  assert.deepEqual(
    data.map(({ state }: { state: string }) => state),
    ['resolved'],
  );
  assertOnceEach(receiver.arrivals, webhook.secret);
  third.child.kill('SIGTERM');
  await third.exited;
  await receiver.close();
  await isolated.clean();
});

if (onPostgres) {
  test('two processes on one database: one incident, one event of each kind', async () => {
    const isolated = await isolatedEnv();
    const start = () => createApp(readConfig(isolated.env, false), { tokenLimit: 1_000_000 });
    const apps: App[] = [await start(), await start()];
    const receiver = await Receiver.open();
    const shops = await Promise.all(apps.map((app) => Shop.open(app.apiUrl(), failing('1'))));
    const { secret } = await subscribe(apps[0]!.apiUrl(), receiver);
    for (const shop of shops) {
      await change(shop, 'Errors', shorten);
      await shop.released(image(1));
    }
    await underLoad(shops[0]!, () => underLoad(shops[1]!, () => receiver.has(2, limitMs)));
    await receiver.has(4, 2 * limitMs);
    for (const shop of shops) {
      assertOnceEach(
        receiver.arrivals.filter(({ event }) => event.project_id === shop.project),
        secret,
      );
    }
    await Promise.all(apps.map((app) => app.stop()));
    await receiver.close();
    await isolated.clean();
  });
}
