// What the supervisor does when its children end, when it is killed itself, and with sockets of systemd.
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { get, type IncomingMessage } from 'node:http';
import { join } from 'node:path';
import { test } from 'node:test';
import { adminToken, call, isolatedEnv } from '../helpers/app.ts';
import { childrenOf, isAlive } from '../helpers/children.ts';
import { cli } from '../helpers/cli.ts';
import { startLoad } from '../helpers/load.ts';
import { type Service, startService } from '../helpers/service.ts';
import { holdSockets } from '../helpers/systemd-launcher.ts';
import { until } from '../helpers/wait.ts';

const headers = { authorization: `Bearer ${adminToken}` };
const isRefused = (failure: string) => failure.includes('ECONNREFUSED');

async function withService(
  env: Record<string, string>,
  work: (service: Service, url: string) => Promise<void>,
): Promise<void> {
  const service = startService({ ...env, SLUICE_LOG_LEVEL: 'warn' });
  try {
    await work(service, await service.url);
  } finally {
    service.killAll();
    await service.exited;
  }
}

const controlOf = ({ child }: Service, not?: number) =>
  until('a control process', () => childrenOf(child.pid!, 'control.js').find((pid) => pid !== not), 30_000);

/** `npm run soak -- planes` takes more. */
const kills = Number(process.env.SLUICE_TEST_KILLS ?? 4);

test('the control process is killed again and again: it is back each time, and no connection is refused', async () => {
  const { env, clean } = await isolatedEnv();
  await withService(env, async (service, url) => {
    const load = startLoad([`${url}/livez`, `${url}/docs/errors`], {});
    try {
      for (let kill = 1; kill <= kills; kill++) {
        const pid = await controlOf(service);
        const answered = load.succeeded();
        await until('answers', () => load.succeeded() > answered + 20, 60_000);
        process.kill(pid, 'SIGKILL');
        await controlOf(service, pid);
        const before = load.succeeded();
        await until('answers again', () => load.succeeded() > before, 60_000);
        assert.equal((await call(url, 'GET', '/v1/projects')).status, 200);
      }
    } finally {
      await load.stop();
    }
    assert.deepEqual(load.failures.filter(isRefused), []);
    const told = service.output().match(/the control process was ended by SIGKILL/g);
    assert.equal(told?.length, kills, service.output());
  });
  await clean();
});

test('kill -9 of the supervisor alone: its control process ends by itself, its workers once the next service is there', async () => {
  const { env, clean } = await isolatedEnv();
  await withService(env, async (service) => {
    const control = childrenOf(service.child.pid!, 'control.js');
    const workers = childrenOf(service.child.pid!, 'router-worker.js');
    assert.equal(control.length, 1);
    assert.ok(workers.length >= 1);
    service.child.kill('SIGKILL');
    await until('the control process to end', () => !control.some(isAlive));
    assert.ok(workers.every(isAlive));
    await withService(env, async (_next, url) => {
      assert.equal((await call(url, 'GET', '/v1/projects')).status, 200);
      await until('the workers to end', () => !workers.some(isAlive));
    });
  });
  await clean();
});

test('sockets of systemd: they are used, by name, and a restart under load refuses nothing', async () => {
  const { env, dataDir, clean } = await isolatedEnv();
  const held = holdSockets(['api', 'router', 'router-tls']);
  const url = `http://127.0.0.1:${held.ports.api}`;
  let service = held.start(env);
  try {
    assert.equal(await service.url, url);
    assert.match(service.output(), new RegExp(`localhost:${held.ports.router}\\b`));
    const load = startLoad([`${url}/v1/projects`, `http://127.0.0.1:${held.ports.router}/`], headers, [200, 404]);
    try {
      for (let round = 0; round < 3; round++) {
        const before = load.succeeded();
        await until('answers', () => load.succeeded() > before + 20, 60_000);
        service.child.kill('SIGTERM');
        assert.deepEqual(await service.exited, [0, null]);
        assert.ok(!existsSync(join(dataDir, 'address')));
        service = held.start(env);
        await service.url;
      }
    } finally {
      await load.stop();
    }
    assert.deepEqual(load.failures, []);
  } finally {
    service.killAll();
    await service.exited;
    held.close();
    await clean();
  }
});

test('a socket of systemd for a port that no setting names is a mistake, in one line', async () => {
  const { env, clean } = await isolatedEnv();
  const held = holdSockets(['something']);
  const service = held.start({ ...env, SLUICE_PORT: '8080' });
  assert.deepEqual(await service.exited, [78, null]);
  assert.match(service.output(), /^sluice: LISTEN_FDS: the socket at 127\.0\.0\.1 port \d+ is none of SLUICE_PORT/);
  held.close();
  await clean();
});

test('the role of a router alone: a control process with its agent, and workers that answer', async () => {
  const { env, clean } = await isolatedEnv();
  // It opens no engine, and so needs no access to any: there is no such cluster.
  const regions = { SLUICE_REGIONS: 'local=kubernetes:nowhere' };
  await withService({ ...env, ...regions, SLUICE_ROLES: 'router' }, async (service) => {
    assert.doesNotMatch(service.output(), /region local/);
    const port = Number(/answer on http:\/\/\*\.localhost:(\d+)/.exec(service.output())![1]);
    const status = await new Promise((resolve, reject) => {
      get({ host: '127.0.0.1', port, agent: false }, (response: IncomingMessage) => {
        response.resume();
        resolve(response.statusCode);
      }).on('error', reject);
    });
    assert.equal(status, 404);
  });
  await clean();
});

test('`sluice reload` without a service says so', async () => {
  const { dataDir, clean } = await isolatedEnv();
  const { code, stderr } = await cli(['reload'], { SLUICE_DATA_DIR: dataDir });
  assert.equal(code, 5);
  assert.match(stderr, /No service runs on the data directory/);
  await clean();
});
