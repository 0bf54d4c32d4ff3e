// After a crash of everything: nobody waits for routers that are gone.
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import { call, isolatedEnv } from '../helpers/app.ts';
import { startService } from '../helpers/service.ts';
import { until } from '../helpers/wait.ts';

test('an instance that drains is not kept for the leases of routers that were killed', {
  timeout: 180_000,
}, async () => {
  const { env, clean } = await isolatedEnv();
  const settings = { ...env, SLUICE_ROUTER_LEASE_S: '3600' };
  let service = startService(settings);
  try {
    let url = await service.url;
    const project = await call(url, 'POST', '/v1/projects', { body: { name: 'Shop' } });
    const path = `/v1/projects/${project.body.id}`;
    await call(url, 'PATCH', `${path}/environments/production`, { body: { drain_s: 1 } });
    const deploy = async (image: string) => {
      const { body } = await call(url, 'POST', `${path}/deployments`, { body: { environment: 'production', image } });
      const state = async () => (await call(url, 'GET', `${path}/deployments/${body.id}`)).body.state;
      await until('the deployment', async () => (await state()) === 'succeeded', 60_000, 200);
    };
    await deploy('shop:v1');
    service.killAll();
    await service.exited;
    service = startService(settings);
    url = await service.url;
    await deploy('shop:v2');
    await until('the old instance to be gone', () => countInstances(env.SLUICE_DATA_DIR!) === 1, 60_000, 200);
  } finally {
    service.killAll();
    await service.exited;
    await clean();
  }
});

function countInstances(dataDir: string): number {
  const database = new DatabaseSync(join(dataDir, 'sluice.db'), { readOnly: true });
  const { count } = database.prepare('select count(*) as count from instance').get() as { count: number };
  database.close();
  assert.ok(count > 0);
  return count;
}
