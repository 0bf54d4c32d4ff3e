// Visitors notice nothing of a reload: each router worker is replaced while requests flow.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { call, isolatedEnv } from '../helpers/app.ts';
import { childrenOf } from '../helpers/children.ts';
import { startLoad } from '../helpers/load.ts';
import { startService } from '../helpers/service.ts';
import { until } from '../helpers/wait.ts';

test('SIGHUP while visitors send requests: workers are replaced, and none fails', { timeout: 240_000 }, async () => {
  const { env, clean } = await isolatedEnv();
  const service = startService({ ...env, SLUICE_ROUTER_WORKERS: '2', SLUICE_LOG_LEVEL: 'info' });
  try {
    const url = await service.url;
    const project = await call(url, 'POST', '/v1/projects', { body: { name: 'Shop' } });
    const body = { environment: 'production', image: 'shop:v1' };
    const deployments = `/v1/projects/${project.body.id}/deployments`;
    await call(url, 'POST', deployments, { body });
    await until(
      'the deployment',
      async () => (await call(url, 'GET', deployments)).body.data[0].state === 'succeeded',
      60_000,
      200,
    );
    const port = /answer on http:\/\/\*\.localhost:(\d+)/.exec(service.output())![1];
    const workers = () => childrenOf(service.child.pid!, 'worker/main.ts');
    const before = workers();
    assert.equal(before.length, 2);
    const visitors = Array.from({ length: 4 }, () => `http://127.0.0.1:${port}/`);
    const load = startLoad(visitors, { host: 'shop-production.localhost' });
    try {
      await until('requests to flow', () => load.succeeded() > 100);
      service.child.kill('SIGHUP');
      await until('the reload', () => service.output().includes('reloaded: '), 60_000);
      await until('the old workers to end', () => !workers().some((pid) => before.includes(pid)));
    } finally {
      await load.stop();
    }
    assert.deepEqual(load.failures, []);
    assert.equal(workers().length, 2);
  } finally {
    service.killAll();
    await service.exited;
    await clean();
  }
});
