// The stand-in's instances outlive the service, as containers do.
import assert from 'node:assert/strict';
import { existsSync, rmSync, statSync } from 'node:fs';
import { get } from 'node:http';
import { join } from 'node:path';
import { json } from 'node:stream/consumers';
import { test } from 'node:test';
import { standinInOwnProcess } from '../../src/engines/standin/standin-process.ts';
import { entryPath } from '../../src/lib/install.ts';
import { call, isolatedEnv } from '../helpers/app.ts';
import { commandOf, isAlive, processesOf } from '../helpers/children.ts';
import { ids, specOf, startReady } from '../helpers/instances.ts';
import { type Service, startService } from '../helpers/service.ts';
import { until } from '../helpers/wait.ts';

const routerPortOf = (service: Service) => Number(/answer on http:\/\/\*\.localhost:(\d+)/.exec(service.output())![1]);

/** Which instance answers visitors of the shop; null: none does. */
const visit = (port: number): Promise<string | null> =>
  new Promise((resolve) => {
    get({ host: '127.0.0.1', port, headers: { host: 'shop-production.localhost' }, agent: false }, (response) => {
      json(response).then(
        (body) => resolve((body as { instance?: string }).instance ?? null),
        () => resolve(null),
      );
    }).on('error', () => resolve(null));
  });

test('kill -9 of the whole service: instances answer on and are found again', { timeout: 240_000 }, async () => {
  const { env, dataDir, clean } = await isolatedEnv();
  let service = startService(env);
  try {
    const url = await service.url;
    const project = await call(url, 'POST', '/v1/projects', { body: { name: 'Shop' } });
    const path = `/v1/projects/${project.body.id}/deployments`;
    const deployed = await call(url, 'POST', path, { body: { environment: 'production', image: 'shop:v1' } });
    assert.ok(deployed.status < 300, JSON.stringify(deployed.body));
    const instance = await until('the instance', () => visit(routerPortOf(service)), 60_000);
    assert.equal(statSync(join(dataDir, 'standin.sock')).mode & 0o777, 0o600);
    service.killAll();
    await service.exited;
    const [pid] = processesOf(dataDir, 'standin.js');
    assert.ok(pid, 'the process of the instances outlives the service');
    service = startService(env);
    await service.url;
    const again = await until('an answer', () => visit(routerPortOf(service)), 60_000);
    assert.equal(again, instance);
    assert.deepEqual(processesOf(dataDir, 'standin.js'), [pid]);
  } finally {
    service.killAll();
    await service.exited;
    await clean();
  }
  await until(
    'the process of the instances to end with its data directory',
    () => processesOf(dataDir, 'standin.js').length === 0,
  );
});

test('Ctrl-C ends the instances too, and the next start replaces them', { timeout: 240_000 }, async () => {
  const { env, dataDir, clean } = await isolatedEnv();
  let service = startService(env);
  try {
    const url = await service.url;
    const project = await call(url, 'POST', '/v1/projects', { body: { name: 'Shop' } });
    const path = `/v1/projects/${project.body.id}`;
    const body = { environment: 'production', image: 'shop:v1' };
    assert.equal((await call(url, 'POST', `${path}/deployments`, { body })).status, 201);
    const instance = await until('the instance', () => visit(routerPortOf(service)), 60_000);
    service.child.kill('SIGINT');
    await service.exited;
    assert.deepEqual(processesOf(dataDir, 'standin.js'), []);
    service = startService(env);
    const again = await service.url;
    const next = await until('an answer', () => visit(routerPortOf(service)), 60_000);
    assert.notEqual(next, instance);
    const { data } = (await call(again, 'GET', `${path}/environments/production/instances`)).body;
    const old = data.find(({ id }: { id: string }) => id === instance);
    assert.deepEqual([old.state, old.ended.reason], ['ended', 'evicted']);
    assert.ok(old.ended.at >= old.started_at, JSON.stringify(old));
  } finally {
    service.child.kill('SIGINT');
    await service.exited;
    await clean();
  }
});

test('a process of instances that was killed is started again by the next instance', async () => {
  const { dataDir, clean } = await isolatedEnv();
  try {
    const engine = standinInOwnProcess(dataDir, ids('installation'));
    const workload = { image: 'shop:v1', variables: {} };
    assert.deepEqual(await engine.list(), []);
    assert.ok(!existsSync(join(dataDir, 'standin.sock')), 'no process without an instance');
    await startReady(engine, await specOf(engine, workload));
    const [pid] = processesOf(dataDir, entryPath('standin'));
    assert.doesNotMatch(commandOf(pid!), /SLUICE/);
    process.kill(pid!, 'SIGKILL');
    await until('its end', () => !isAlive(pid!));
    assert.deepEqual(await engine.list(), []);
    await startReady(engine, await specOf(engine, workload));
    assert.equal((await engine.list()).length, 1);
  } finally {
    rmSync(dataDir, { recursive: true, force: true });
    await clean();
  }
  await until('its end', () => processesOf(dataDir, entryPath('standin')).length === 0);
});
