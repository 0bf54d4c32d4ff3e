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

export type Pages = Record<string, [path: string, text: string]>;

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

export interface Troubles {
  pages: Pages;
  close(): void;
}

/** Two more projects: one is down and has a domain that waits for its DNS record, the canary of the other was undone. */
export async function makeTroubles(t: TestApp): Promise<Troubles> {
  const check = { interval_s: 1, unhealthy_after: 2, path: '/' };
  const down = await Shop.open(t.url, { replicas: 2, health_check: check, variables: { STANDIN_FAIL_ON: '/fail' } });
  const undone = await Shop.open(t.url, { canary: { bake_s: 600, min_requests: 5 } });
  await down.api('PATCH', '', { name: 'Billing', slug: 'billing' });
  await undone.api('PATCH', '', { name: 'Mail', slug: 'mail' });
  await Promise.all([down.released('registry.example/billing:4.1.0'), undone.released('registry.example/mail:1.2.0')]);
  // Also those that are started in place of what failed.
  const visits = setInterval(() => void down.visit(undefined, '/fail').catch(() => {}), 1000);
  await down.api('POST', '/domains', { hostname: 'billing.example.com', environment: 'production' });

  const variables = { STANDIN_ERROR_RATE: '1', QUEUE_URL: 'amqp://queue' };
  await undone.set({ variables, resources: { memory_mb: 256 } });
  const { id } = await undone.deploy('registry.example/mail:1.3.0', { strategy: 'canary', canary_percent: 50 });
  await undone.reaches(id, 'canary');
  const load = undone.load(2);
  await undone.reaches(id, 'failed');
  await load.stop();
  await undone.set({ variables: { STANDIN_ERROR_RATE: null } });
  await until('billing to be down', async () => (await down.environment()).health.state === 'down' || undefined);
  return {
    pages: {
      undone: [`/projects/${undone.project}/deployments/${id}`, 'r2 was undone'],
      undone_environment: [`/projects/${undone.project}/environments/production`, 'Recent deployments'],
      down_environment: [`/projects/${down.project}/environments/production`, 'is healthy'],
      waiting_domain: [`/projects/${down.project}/domains`, 'Show that it is yours'],
    },
    close: () => clearInterval(visits),
  };
}

const insertedAtOnce = 100;
const dayMs = 86_400_000;

/** Projects beside those that are there, in the image of the oldest, which has deployed something; each was deployed `deployments` times. */
export async function addProjects({ app }: TestApp, count: number, deployments = 0): Promise<void> {
  const { db } = app.store;
  const oldest = db.selectFrom('project').selectAll().orderBy('id').limit(1);
  const project = await oldest.executeTakeFirstOrThrow();
  const ofOldest = { project_id: project.id };
  const environment = await db
    .selectFrom('environment')
    .selectAll()
    .where('project_id', '=', ofOldest.project_id)
    .executeTakeFirstOrThrow();
  const deployment = await db
    .selectFrom('deployment')
    .selectAll()
    .where('project_id', '=', ofOldest.project_id)
    .where('state', '=', 'succeeded')
    .executeTakeFirst();
  const now = Date.now();
  for (let from = 0; from < count; from += insertedAtOnce) {
    const numbers = Array.from({ length: Math.min(insertedAtOnce, count - from) }, (_, n) => from + n);
    const idOf = (n: number) => `prj_01${String(n).padStart(24, '0')}`;
    const slugOf = (n: number) => `p-${String(n).padStart(4, '0')}`;
    await db
      .insertInto('project')
      .values(numbers.map((n) => ({ ...project, id: idOf(n), name: `Project ${slugOf(n).slice(2)}`, slug: slugOf(n) })))
      .execute();
    await db
      .insertInto('environment')
      .values(
        numbers.map((n) => ({
          ...environment,
          ...{ project_id: idOf(n), host: `${slugOf(n)}-production`, health_state: 'idle' as const },
        })),
      )
      .execute();
    for (let round = 0; deployment && round < deployments; round++) {
      const rows = numbers.map((n) => ({
        ...deployment,
        ...{ id: `dpl_01${String(round * count + n).padStart(24, '0')}`, project_id: idOf(n), revision: round + 1 },
        ...{ image: `registry.example/p${n}:1.${round}`, previous_revision: round === 0 ? null : round },
        ...{ created_at: now - (deployments - round) * dayMs, finished_at: now - (deployments - round) * dayMs + 9000 },
      }));
      await db.insertInto('deployment').values(rows).execute();
    }
  }
}

/** Every page, with a text that is on it once it has loaded. */
export function pagesOf({ shop, canary, failed, webhook, delivery }: Scene): Pages {
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
    deployments: [`${project}/deployments`, 'shop:1.4'],
    canary: [`${project}/deployments/${canary.id}`, 'It would be undone at odds of'],
    failed: [`${project}/deployments/${failed.id}`, 'r1 serves all requests.'],
    alerts: [`${project}/alerts`, 'visitors'],
    domains: [`${project}/domains`, 'shop.test'],
    settings: [`${project}/settings`, 'New environment'],
    webhooks: ['/webhooks', 'chat'],
    webhook: [`/webhooks/${webhook}`, 'Replay'],
    delivery: [`/webhooks/${webhook}/deliveries/${delivery}`, 'thank you'],
    tokens: ['/tokens', 'New token'],
    events: ['/events', 'Corner shop'],
    audit: ['/audit', 'created a deployment'],
    all_deployments: ['/deployments', 'shop:1.4'],
    all_alerts: ['/alerts', 'spares'],
    all_domains: ['/domains', 'shop.test'],
    registries: ['/registries', 'No registry logins.'],
    regions: ['/regions', 'stand-in'],
    account: ['/account', 'no limit'],
    catalogue: ['/catalogue', 'Catalogue'],
    session: ['/session', 'Scopes'],
    missing: ['/nowhere', 'Page not found'],
  };
}
