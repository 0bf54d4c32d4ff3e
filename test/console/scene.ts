// Data for every page of the console: a project with traffic, a canary, an alert, a domain, a webhook.
import assert from 'node:assert/strict';
import type { Page } from 'playwright-core';
import type { Deployment } from '../../src/contract/deployments.ts';
import { insertUsage } from '../../src/deployments/usage-queries.ts';
import { adminToken, call, type TestApp } from '../helpers/app.ts';
import { answering, Receiver } from '../helpers/receiver.ts';
import { Shop } from '../helpers/shop.ts';
import { until } from '../helpers/wait.ts';

export async function signIn(page: Page, url: string, path = '', token = adminToken): Promise<void> {
  await page.goto(`${url}/console${path}`);
  await page.getByLabel('Token').fill(token);
  await page.getByRole('button', { name: 'Sign in' }).click();
}

export interface Scene {
  shop: Shop;
  canary: Deployment;
  failed: Deployment;
  webhook: string;
  delivery: string;
  close(): Promise<void>;
}

async function create(url: string, path: string, body: object) {
  const answer = await call(url, 'POST', path, { body });
  assert.ok(answer.status < 300, JSON.stringify(answer.body));
  return answer.body;
}

/**
 * Both revisions of a canary get requests, and a few requests to the new one fail: less than a point more than of the other,
 * or it would be undone.
 */
async function runCanary(shop: Shop): Promise<{ canary: Deployment; failed: Deployment }> {
  await shop.released('registry.example/shop:1.3');
  await shop.set({ variables: { STANDIN_IMAGE_MISSING: '1' } });
  const failed = await shop.reaches((await shop.deploy('registry.example/shop:gone')).id, 'failed');
  await shop.set({
    variables: { STANDIN_IMAGE_MISSING: null, STANDIN_ERROR_RATE: '0.005', DATABASE_URL: 'postgres://db' },
    canary: { bake_s: 3600, advance: 'manual', max_error_rate: 1, max_p95_ms: 600_000 },
  });
  const { id } = await shop.deploy('registry.example/shop:1.4', {
    strategy: 'canary',
    canary_percent: 25,
    note: 'Cart rewritten',
  });
  const canary = await shop.reaches(id, 'canary');
  const load = shop.load(2);
  await until('metrics of both revisions', async () => {
    const { canary: now } = await shop.deployment(id);
    return now && now.canary.requests > 30 && now.stable.requests > 30 ? now : undefined;
  });
  await load.stop();
  return { canary, failed };
}

/** For the last twenty minutes, as an engine would that can say what instances use. The stand-in cannot. */
async function measureInstances({ app }: TestApp, { project }: Shop): Promise<void> {
  const { db } = app.store;
  const begunMs = Date.now() - 20 * 60_000;
  await db.updateTable('environment').set({ created_at: begunMs }).where('project_id', '=', project).execute();
  const found = await db.selectFrom('instance').select(['id', 'revision']).where('project_id', '=', project).execute();
  const rows = found.flatMap(({ id, revision }, n) =>
    Array.from({ length: 60 }, (_, round) => ({
      ...{ project_id: project, environment: 'production', revision, instance_id: id },
      ...{ at: begunMs + round * 20_000, memory_bytes: (90 + 40 * n + round) * 2 ** 20 },
      cpu_ms: 4000 * round * (n + 1) + 3000 * (round % 3),
    })),
  );
  await insertUsage(db, rows);
}

export async function makeScene(t: TestApp): Promise<Scene> {
  const shop = await Shop.open(t.url);
  await shop.api('PATCH', '', { name: 'Corner shop', description: 'Sells what the corner needs', labels: ['retail'] });
  const receiver = await Receiver.open(answering(200, {}, 'thank you'));
  const webhook = await create(t.url, '/v1/webhooks', { url: receiver.url, events: ['*'], description: 'chat' });
  const { canary, failed } = await runCanary(shop);
  await measureInstances(t, shop);
  await shop.api('POST', '/environments', { name: 'staging' });
  const rules = `/v1/projects/${shop.project}/alert-rules`;
  const below = { environment: 'production', comparator: 'lt' };
  await create(t.url, rules, { ...below, name: 'visitors', metric: 'request_rate', threshold: 10 });
  await create(t.url, rules, {
    ...below,
    name: 'spares',
    metric: 'healthy_instances',
    threshold: 5,
    severity: 'critical',
  });
  await create(t.url, `/v1/projects/${shop.project}/domains`, { hostname: 'shop.test', environment: 'production' });
  const domains = await until('a certificate', async () => {
    const { body } = await shop.api('GET', '/domains');
    return body.data[0].state === 'active' ? body.data : undefined;
  });
  assert.equal(domains.length, 1);
  await until('an alert', async () => {
    const { body } = await shop.api('GET', '/alerts?state=firing');
    return body.data.length > 0 || undefined;
  });
  const delivery = await until('a delivery', async () => {
    const { body } = await call(t.url, 'GET', `/v1/webhooks/${webhook.id}/deliveries?state=succeeded`);
    return body.data[0]?.id as string | undefined;
  });
  return { shop, canary, failed, webhook: webhook.id, delivery, close: async () => receiver.close() };
}

/** Every page, with a text that is on it once it has loaded. */
export function pagesOf({
  shop,
  canary,
  failed,
  webhook,
  delivery,
}: Scene): Record<string, [path: string, text: string]> {
  const project = `/projects/${shop.project}`;
  return {
    projects: ['/projects', 'Corner shop'],
    project: [project, 'Activity'],
    environment: [`${project}/environments/production`, 'Memory'],
    revisions: [`${project}/environments/production/revisions`, 'Compare'],
    instances: [`${project}/environments/production/instances`, 'Last check'],
    variables: [`${project}/environments/production/variables`, 'DATABASE_URL'],
    environment_alerts: [`${project}/environments/production/alerts`, 'visitors'],
    environment_settings: [`${project}/environments/production/settings`, 'Canary analysis'],
    logs: [`${project}/environments/production/logs`, 'started'],
    deployments: [`${project}/deployments`, 'registry.example/shop:1.4'],
    canary: [`${project}/deployments/${canary.id}`, 'It would be undone at odds of'],
    failed: [`${project}/deployments/${failed.id}`, 'r1 serves all requests.'],
    alerts: [`${project}/alerts`, 'visitors'],
    domains: [`${project}/domains`, 'shop.test'],
    settings: [`${project}/settings`, 'New environment'],
    webhooks: ['/webhooks', 'chat'],
    webhook: [`/webhooks/${webhook}`, 'Replay'],
    delivery: [`/webhooks/${webhook}/deliveries/${delivery}`, 'thank you'],
    tokens: ['/tokens', 'New token'],
    audit: ['/audit', 'created a deployment'],
    all_deployments: ['/deployments', 'registry.example/shop:1.4'],
    all_alerts: ['/alerts', 'spares'],
    all_domains: ['/domains', 'shop.test'],
    registries: ['/registries', 'No registry logins.'],
    regions: ['/regions', 'standin'],
    catalogue: ['/catalogue', 'Catalogue'],
    session: ['/session', 'Scopes'],
    missing: ['/nowhere', 'Page not found'],
  };
}
