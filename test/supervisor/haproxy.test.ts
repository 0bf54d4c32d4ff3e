// The service with HAProxy as its data plane: visitors notice neither a killed service nor a rollout after its return.
import assert from 'node:assert/strict';
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { haproxyFilesOf } from '../../src/traffic/haproxy/haproxy-files.ts';
import { runningMaster, stopMaster } from '../../src/traffic/haproxy/haproxy-process.ts';
import { call, isolatedEnv } from '../helpers/app.ts';
import { freePort } from '../helpers/free-port.ts';
import { startLoad } from '../helpers/load.ts';
import { refusesConnections } from '../helpers/raw-http.ts';
import { ask } from '../helpers/router.ts';
import { startService } from '../helpers/service.ts';
import { until } from '../helpers/wait.ts';

const deploy = async (url: string, deployments: string, body: object) => {
  const { body: created, status } = await call(url, 'POST', deployments, {
    body: { environment: 'production', ...body },
  });
  assert.equal(status, 201);
  await until(
    'the deployment',
    async () => (await call(url, 'GET', `${deployments}/${created.id}`)).body.state === 'succeeded',
    60_000,
    200,
  );
};

test('kill -9 of the service under load, a canary after its return, a stop', { timeout: 240_000 }, async () => {
  const { env, clean } = await isolatedEnv();
  const settings = {
    ...env,
    SLUICE_DATA_PLANE: 'auto',
    SLUICE_ROUTER_PORT: String(await freePort()),
    SLUICE_ROUTER_TLS_PORT: String(await freePort()),
    SLUICE_LOG_LEVEL: 'info',
  };
  const files = haproxyFilesOf(env.SLUICE_DATA_DIR!);
  let service = startService(settings);
  try {
    let url = await service.url;
    assert.match(service.output(), /the router is HAProxy \d+\.\d+/);
    const project = await call(url, 'POST', '/v1/projects', { body: { name: 'Shop' } });
    const deployments = `/v1/projects/${project.body.id}/deployments`;
    const environment = `/v1/projects/${project.body.id}/environments/production`;
    await call(url, 'PATCH', environment, {
      body: { canary: { warmup_s: 0, bake_s: 2, min_requests: 20 }, drain_s: 1 },
    });
    await deploy(url, deployments, { image: 'shop:v1' });
    const port = Number(settings.SLUICE_ROUTER_PORT);
    // A connection that stays open would hold up the stop.
    const first = await ask(port, { host: 'shop-production.localhost', headers: { connection: 'close' } });
    assert.equal(first.status, 200, 'a deployment that has succeeded serves');
    const visitors = Array.from({ length: 4 }, () => `http://127.0.0.1:${port}/`);
    const load = startLoad(visitors, { host: 'shop-production.localhost' });
    try {
      await until('requests to flow', () => load.succeeded() > 100);
      const master = runningMaster(files);
      service.killAll();
      await service.exited;
      const sent = load.succeeded();
      await until('requests to flow on', () => load.succeeded() > sent + 100);
      service = startService(settings);
      url = await service.url;
      await deploy(url, deployments, { image: 'shop:v2', strategy: 'canary', canary_percent: 30 });
      assert.equal(runningMaster(files), master);
    } finally {
      await load.stop();
    }
    assert.deepEqual(load.failures, []);
    console.log(`${load.succeeded()} requests over kill -9 of the service and a canary: none failed`);
    service.child.kill('SIGTERM');
    assert.deepEqual(await service.exited, [0, null]);
    assert.equal(runningMaster(files), null);
  } finally {
    service.killAll();
    await stopMaster(files, 0);
    await clean();
  }
});

test('a start that fails after HAProxy was asked for ends, and gives up its ports', { timeout: 120_000 }, async () => {
  const { env, clean } = await isolatedEnv();
  const port = await freePort();
  const folder = mkdtempSync(join(tmpdir(), 'sluice-broken-haproxy-'));
  const broken = join(folder, 'haproxy');
  writeFileSync(
    broken,
    '#!/bin/sh\ncase "$*" in *-v*) exec haproxy "$@";; esac\necho "[ALERT] it does not work" >&2\nexit 1\n',
  );
  chmodSync(broken, 0o755);
  const settings = {
    ...env,
    SLUICE_DATA_PLANE: `haproxy:${broken}`,
    SLUICE_PORT: String(port),
    SLUICE_ROUTER_PORT: String(await freePort()),
    SLUICE_ROUTER_TLS_PORT: String(await freePort()),
  };
  const service = startService(settings);
  try {
    await until('its end', () => service.child.exitCode !== null, 30_000);
    assert.equal(service.child.exitCode, 1, service.output());
    assert.match(service.output(), /HAProxy does not start/);
    assert.ok(await refusesConnections(port));
  } finally {
    service.killAll();
    rmSync(folder, { recursive: true });
    await stopMaster(haproxyFilesOf(env.SLUICE_DATA_DIR!), 0);
    await clean();
  }
});
