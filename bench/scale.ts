// npm run bench -- scale growth: how waiting and idling grow with what nobody touches (scale/growth.ts).
// npm run bench -- scale [environments]: what an installation of 100,000 environments on one PostgreSQL costs, part by
// part. The rows are written in bulk; the queries and loops are the service's own. docs/scale.md says what follows from
// it. PostgreSQL and this process share the machine, and PostgreSQL does not wait for its disk (fsync is off).
import { createApp } from '../src/app.ts';
import { readConfig } from '../src/config.ts';
import { Schedule } from '../src/deployments/reconcile/schedule.ts';
import { call, isolatedEnv } from '../test/helpers/app.ts';
import { createDatabase } from '../test/helpers/postgres.ts';
import { until } from '../test/helpers/wait.ts';
import { note } from './lib/report.ts';
import { type Cost, costOf, reportCost } from './scale/cost.ts';
import { measureDeliveries, measureEvents, measureRetention } from './scale/events.ts';
import { benchGrowth } from './scale/growth.ts';
import { measureAlerts, measureIdlePasses, measureRouterLoad, measureTraffic } from './scale/loops.ts';
import { bytesPerRow, environment, type Installation, idOf, openInstallation } from './scale/scale-installation.ts';

/**
 * A rollout from the request to its end, on the stand-in, with all parts of the service on the same PostgreSQL. What the same
 * service costs in the same time without rollouts is taken off.
 */
async function measureRollouts({ databaseUrl, server }: Installation, count: number): Promise<void> {
  const isolated = await isolatedEnv();
  const database = await createDatabase(databaseUrl);
  const env = { ...isolated.env, SLUICE_DATABASE_URL: database.url };
  const app = await createApp(readConfig(env, false), { standinInProcess: true, tokenLimit: 1_000_000 });
  const at = (method: string, path: string, body?: object) => call(app.apiUrl(), method, `/v1${path}`, { body });
  const { id } = (await at('POST', '/projects', { name: 'Shop' })).body;
  await at('PATCH', `/projects/${id}/environments/production`, { drain_s: 0 });
  const rollOut = async (n: number) => {
    const body = { environment: 'production', image: `registry.example/shop:${n}` };
    const { body: made } = await at('POST', `/projects/${id}/deployments`, body);
    const isOver = async () => (await at('GET', `/projects/${id}/deployments/${made.id}`)).body.state === 'succeeded';
    await until('the rollout', isOver, 60_000, 200);
  };
  await rollOut(0);
  const cost = await costOf(server, async () => {
    for (let n = 1; n <= count; n++) await rollOut(n);
    return count;
  });
  const idle = await costOf(server, async () => {
    await new Promise((resolve) => setTimeout(resolve, 5000));
    return 1;
  });
  reportCost('rollouts of one instance, one after another', 'rollout', without(cost, idle));
  await app.stop();
  await isolated.clean();
}

function without(cost: Cost, idle: Cost): Cost {
  const share = cost.seconds / idle.seconds;
  return {
    ...cost,
    ownCpuS: Math.max(0, cost.ownCpuS - idle.ownCpuS * share),
    databaseCpuS: Math.max(0, cost.databaseCpuS - idle.databaseCpuS * share),
    statements: cost.statements - idle.statements * share,
  };
}

const count = Number(process.argv.slice(3).find((word) => /^\d+$/.test(word)) ?? 100_000);
const idleTables = ['project', 'environment', 'revision', 'deployment', 'instance', 'routing'];

async function measureBytes({ app }: Installation, leaseBytes: number): Promise<void> {
  const bytes = new Map<string, number>();
  for (const table of [...idleTables, 'deployment_timeline', 'alert_rule'])
    bytes.set(table, await bytesPerRow(app, table));
  const one = (table: string) => bytes.get(table)!;
  const idle = idleTables.reduce((sum, table) => sum + one(table), 0);
  const all = idle + 6 * one('deployment_timeline') + 2 * one('alert_rule') + leaseBytes;
  note(
    'bytes of an environment',
    all.toFixed(0),
    [...bytes].map(([name, size]) => `${name} ${size.toFixed(0)}`).join(', '),
  );
}

async function tellBytes({ app }: Installation, ...tables: string[]): Promise<void> {
  for (const table of tables) note(`bytes of a row: ${table}`, (await bytesPerRow(app, table)).toFixed(0));
}

/** Choosing what is due, a round of all environments: pure, no database. */
function measureSchedule(): void {
  const schedule = new Schedule();
  for (let n = 0; n < count; n++) schedule.enqueue({ projectId: idOf('prj', n), environment }, n);
  const startedAt = performance.now();
  let taken = 0;
  while (schedule.isAnyDue(count)) {
    const keys = schedule.take(count, 64);
    for (const key of keys) schedule.plan(key, count + 10_000);
    taken += keys.length;
  }
  const ms = performance.now() - startedAt;
  note('choosing what is due, once for all', `${ms.toFixed(0)} ms`, `${((ms * 1000) / taken).toFixed(1)} µs each`);
}

async function benchUnitCosts(): Promise<void> {
  const startedAt = performance.now();
  const since = () => `${((performance.now() - startedAt) / 1000).toFixed(0)} s`;
  const installation = await openInstallation(count);
  try {
    note(`${count.toLocaleString('en')} environments written`, since());
    measureSchedule();
    await measureRouterLoad(installation);
    await measureBytes(installation, await measureIdlePasses(installation, 30_000));
    await measureTraffic(installation);
    await measureAlerts(installation);
    await measureEvents(installation, 5000);
    await measureDeliveries(installation, 50_000);
    await tellBytes(installation, 'traffic', 'event', 'delivery', 'attempt');
    await measureRetention(installation, 20_000);
    await measureRollouts(installation, 10);
    note('all of this', since());
  } finally {
    await installation.close();
  }
}

if (process.argv.includes('growth')) await benchGrowth();
else await benchUnitCosts();
process.exit(0);
