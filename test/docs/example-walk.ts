// One request to every route, in the order in which somebody would send them: what the reference shows as examples. The
// requests are sent by whoever calls this, in one language or another, against a real service.
import type { ExampleRequest } from '../../src/http/docs/snippets.ts';
import type { TestApp } from '../helpers/app.ts';
import { until } from '../helpers/wait.ts';

/** Returns what came back. `meanwhile` is done again and again until a stream has sent something. */
export type Send = (
  route: string,
  request?: Partial<ExampleRequest>,
  meanwhile?: () => Promise<unknown>,
  // biome-ignore lint/suspicious/noExplicitAny: responses of many shapes
) => Promise<any>;

export async function walkExamples(t: TestApp, receiverUrl: string, send: Send): Promise<void> {
  // biome-ignore lint/suspicious/noExplicitAny: responses of many shapes
  const read = async (path: string): Promise<any> => (await t.call('GET', `/v1${path}`)).body;
  const limit = { limit: 1 };

  await send('token.get');
  await send('account.get');
  await send('regions.list');
  await send('openapi.get');
  await send('tokens.create', { body: { name: 'ci', scopes: ['projects:read', 'deployments:write'] } }).then(
    async ({ id }) => {
      await send('tokens.list', { query: limit });
      await send('tokens.get', { params: { tok: id } });
      await send('tokens.revoke', { params: { tok: id } });
    },
  );

  const { id } = await send('projects.create', { body: { name: 'Shop', labels: ['storefront'] } });
  const project = { id };
  const production = { id, name: 'production' };
  await send('projects.get', { params: project });
  await send('projects.update', { params: project, body: { description: 'What customers see' } });
  await send('environments.create', { params: project, body: { name: 'staging', replicas: 1 } });
  await send('environments.list', { params: project, query: limit });
  await send('environments.delete', { params: { id, name: 'staging' } });
  await send('environments.get', { params: production });
  await send('environments.update', { params: production, body: { replicas: 2, canary: { advance: 'manual' } } });
  const registry = await send('registries.create', {
    body: { host: 'registry.example', username: 'ci', password: 'correct horse battery staple' },
  });
  await send('registries.list', { query: limit });
  await send('registries.get', { params: { reg: registry.id } });
  await send('registries.delete', { params: { reg: registry.id } });

  const webhook = await send('webhooks.create', {
    body: { url: receiverUrl, events: ['deployment.succeeded', 'deployment.failed'] },
  });
  const whk = webhook.id;
  await send('webhooks.list', { query: limit });
  await send('webhooks.get', { params: { whk } });
  await send('webhooks.update', { params: { whk }, body: { description: 'The chat room of the team' } });
  await send('webhooks.test', { params: { whk } });

  const deploymentPath = (dpl: string) => `/projects/${id}/deployments/${dpl}`;
  const ended = (dpl: string) =>
    until(`the end of ${dpl}`, async () => {
      const { state } = await read(deploymentPath(dpl));
      return ['succeeded', 'failed', 'aborted', 'rolled_back'].includes(state) && state;
    });
  const inCanary = (dpl: string) =>
    until('a canary', async () => (await read(deploymentPath(dpl))).canary?.phase !== undefined);
  const deploy = (body: object) =>
    send('deployments.create', { params: project, body: { environment: 'production', ...body } });

  const first = await t.call('POST', `/v1/projects/${id}/deployments`, {
    body: { environment: 'production', image: 'registry.example/shop:1.4' },
  });
  await ended(first.body.id);
  const { id: dpl } = await deploy({ image: 'registry.example/shop:1.5', strategy: 'canary', canary_percent: 10 });
  await inCanary(dpl);
  await send('deployments.pause', { params: { id, dpl } });
  await send('deployments.resume', { params: { id, dpl } });
  await send('deployments.promote', { params: { id, dpl } });
  await ended(dpl);
  await send('deployments.list', { params: project, query: { ...limit, state: 'succeeded' } });
  await send('deployments.get', { params: { id, dpl } });
  await send('deployments.logs', { params: { id, dpl }, query: { tail: 3 } });
  await send('instances.list', { params: production, query: limit });
  await send('revisions.list', { params: production, query: limit });
  await send('revisions.get', { params: { ...production, r: 'r2' } });
  await send('revisions.compare', { params: { ...production, r: 'r2' }, query: { from: 'r1' } });
  await until('a log entry', async () => (await read(`/projects/${id}/environments/production/logs`)).data.length > 0);
  await send('logs.list', { params: production, query: { ...limit, revision: 'r1' } });
  await send('logs.stream', { params: production, query: { since: '2026-01-01T00:00:00.000Z' } });
  await send('environments.usage', { params: production });
  await send('metrics.get', { params: project, query: { environment: 'production' } });
  const rollback = await send('environments.rollback', {
    params: production,
    body: { revision: 'r1', reason: 'Checkout fails' },
  });
  await ended(rollback.id);
  const redeployed = await send('environments.redeploy', {
    params: production,
    body: { strategy: 'canary', canary_percent: 5, note: 'With the new DATABASE_URL' },
  });
  await inCanary(redeployed.id);
  await send('deployments.abort', { params: { id, dpl: redeployed.id } });

  await until('deliveries', async () =>
    (await read(`/webhooks/${whk}/deliveries?state=succeeded`)).data.some(
      (delivery: { event_type: string }) => delivery.event_type !== 'webhook.test',
    ),
  );
  await send('deliveries.list', { params: { whk }, query: { ...limit, state: 'succeeded' } }).then(async ({ data }) => {
    const params = { whk, dlv: data[0].id };
    await send('deliveries.get', { params });
    await send('deliveries.redeliver', { params });
  });
  await send('webhooks.replay', { params: { whk }, body: { since: '2026-01-01T00:00:00.000Z' } });
  await send('webhooks.rotate-secret', { params: { whk }, body: { overlap_s: 3600 } });
  await send('webhooks.delete', { params: { whk } });

  const rule = await send('alert-rules.create', {
    params: project,
    body: {
      environment: 'production',
      name: 'Too many errors',
      metric: 'error_rate',
      comparator: 'gt',
      threshold: 0.05,
    },
  });
  await send('alert-rules.list', { params: project, query: limit });
  await send('alert-rules.get', { params: { id, rul: rule.id } });
  await send('alert-rules.update', { params: { id, rul: rule.id }, body: { threshold: 0.02, severity: 'critical' } });
  await send('alert-rules.delete', { params: { id, rul: rule.id } });
  const message = (status: string) => ({
    version: '4',
    status,
    alerts: [
      {
        status,
        labels: { alertname: 'DiskFull', severity: 'critical' },
        annotations: { summary: 'The disk of db1 is full' },
        startsAt: '2026-01-01T00:00:00.000Z',
        endsAt: status === 'firing' ? '0001-01-01T00:00:00Z' : '2026-01-01T00:10:00.000Z',
        fingerprint: '4f0c1a2b3d5e6f70',
      },
    ],
  });
  const alertmanager = { params: project, query: { environment: 'production' } };
  await send('alerts.alertmanager', { ...alertmanager, body: message('firing') });
  const alerts = await send('alerts.list', { params: project, query: limit });
  await send('alerts.get', { params: { id, alr: alerts.data[0].id } });

  const domain = await send('domains.create', {
    params: project,
    body: { hostname: 'shop.example', environment: 'production' },
  });
  const dom = domain.id;
  await send('domains.verify', { params: { id, dom } });
  await until('a certificate', async () => (await read(`/projects/${id}/domains/${dom}`)).certificate !== null);
  await send('domains.get', { params: { id, dom } });
  await send('domains.renew', { params: { id, dom } });
  await send('domains.list', { params: project, query: limit });

  const events = await send('events.list', { query: { ...limit, type: 'deployment.succeeded' } });
  await send('events.get', { params: { evt: events.data[0].id } });
  let turn = 0;
  const alertAgain = () =>
    t.call('POST', `/v1/projects/${id}/alerts/alertmanager?environment=production`, {
      body: message(turn++ % 2 === 0 ? 'resolved' : 'firing'),
    });
  await send('events.stream', { query: { project_id: id } }, alertAgain);
  await send('audit-log.list', { query: { ...limit, action: 'deployments.create' } });
  await send('overview.get');
  await send('overview.projects', { query: { ...limit, search: 'shop' } });
  await send('overview.deployments', { query: limit });
  await send('overview.alerts', { query: limit });
  await send('overview.domains', { query: limit });
  await t.call('POST', '/console/session', { headers: { origin: t.url } });
  await send('sessions.list', { query: limit }).then(({ data }) =>
    send('sessions.end', { params: { ses: data[0].id } }),
  );
  await send('domains.delete', { params: { id, dom } });
  await send('projects.list', { query: limit });
  await send('projects.delete', { params: project });
  await until('the end of the project', async () => (await read(`/projects/${id}`)).error !== undefined);
}
