// A rollout from the request to its end, on the stand-in, with all parts of the service on the same PostgreSQL.
import { createApp } from '../../src/app.ts';
import { readConfig } from '../../src/config.ts';
import { call, isolatedEnv } from '../../test/helpers/app.ts';
import { createDatabase } from '../../test/helpers/postgres.ts';
import { until } from '../../test/helpers/wait.ts';
import { type Cost, costOf, tell } from './cost.ts';
import type { Installation } from './installation.ts';

/** What the same service costs in the same time without rollouts is taken off. */
export async function measureRollouts({ databaseUrl, server }: Installation, count: number): Promise<void> {
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
  tell('rollouts of one instance, one after another', 'rollout', without(cost, idle));
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
