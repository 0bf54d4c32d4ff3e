// The service as a process: first start, stop, crash, wrong settings.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync, statSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { test } from 'node:test';
import { adminToken, call, isolatedEnv, onPostgres } from '../../helpers/app.ts';
import { startService as start } from '../../helpers/service.ts';

test('first start: data directory, keys only the owner can read, the path of the token with a request that works', async () => {
  const { env, dataDir, clean } = await isolatedEnv();
  const fresh = { ...env, SLUICE_DATA_DIR: join(dataDir, 'new'), SLUICE_ADMIN_TOKEN: '', SLUICE_LOG_LEVEL: 'info' };
  const first = start(fresh);
  await first.url;
  const token = readFileSync(join(dataDir, 'new/admin-token'), 'utf8').trim();
  for (const name of ['admin-token', 'secret.key'])
    assert.equal(statSync(join(dataDir, 'new', name)).mode & 0o777, 0o600);
  assert.equal(statSync(join(dataDir, 'new')).mode & 0o777, 0o700);
  assert.equal(existsSync(join(dataDir, 'new/sluice.db')), !onPostgres);
  assert.match(token, /^slc_[0-9A-Za-z]{36}$/);

  const command = /curl \S+ -H "Authorization: Bearer [\s\S]*-d '\{.*\}'/.exec(first.output())![0];
  const created = JSON.parse(execFileSync('sh', ['-c', `${command} --silent`], { encoding: 'utf8' }));
  assert.equal(created.name, 'My shop');
  first.child.kill('SIGTERM');
  assert.deepEqual(await first.exited, [0, null]);
  assert.match(first.output(), /"path":"\/v1\/projects"/);
  assert.ok(!first.output().includes(token), 'without a terminal, what is printed may be kept');

  const second = start(fresh);
  await second.url;
  assert.doesNotMatch(second.output(), /admin token/i);
  assert.equal((await call(await second.url, 'GET', '/v1/projects', { token })).body.data[0].name, 'My shop');
  second.child.kill('SIGINT');
  assert.deepEqual(await second.exited, [0, null]);
  await clean();
});

test('a changed SLUICE_ADMIN_TOKEN replaces the old one', async () => {
  const { env, clean } = await isolatedEnv();
  const one = start(env);
  assert.equal((await call(await one.url, 'GET', '/v1/token')).status, 200);
  one.child.kill();
  await one.exited;
  const two = start({ ...env, SLUICE_ADMIN_TOKEN: 'another-token-0123456789' });
  assert.equal((await call(await two.url, 'GET', '/v1/token', { token: 'another-token-0123456789' })).status, 200);
  assert.equal((await call(await two.url, 'GET', '/v1/token', { token: adminToken })).status, 401);
  two.child.kill();
  await two.exited;
  await clean();
});

test('SIGTERM: a request in progress is answered; the process then exits 0', async () => {
  const { env, clean } = await isolatedEnv();
  const service = start({ ...env, SLUICE_LOG_LEVEL: 'info' });
  const { port } = new URL(await service.url);
  const body = '{"name":"half sent"}';
  const socket = connect(Number(port), '127.0.0.1');
  let answer = '';
  socket.on('data', (chunk) => {
    answer += chunk;
  });
  socket.write(
    `POST /v1/projects HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${adminToken}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\nExpect: 100-continue\r\n\r\n`,
  );
  await once(socket, 'data'); // 100 Continue: the request is in progress
  service.child.kill('SIGTERM');
  while (!service.output().includes('"stopping"')) await once(service.child.stdout!, 'data');
  socket.write(body);
  await once(socket, 'close');
  assert.match(answer, /HTTP\/1\.1 201 Created/);
  assert.deepEqual(await service.exited, [0, null]);
  await clean();
});

test('a second signal ends at once', async () => {
  const { env, clean } = await isolatedEnv();
  const service = start({ ...env, SLUICE_LOG_LEVEL: 'info' });
  const { port } = new URL(await service.url);
  const socket = connect(Number(port), '127.0.0.1');
  socket.on('error', () => {});
  socket.write(
    `POST /v1/projects HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${adminToken}\r\nContent-Type: application/json\r\nContent-Length: 10\r\nExpect: 100-continue\r\n\r\n`,
  );
  await once(socket, 'data');
  service.child.kill('SIGINT');
  while (!service.output().includes('"stopping"')) await once(service.child.stdout!, 'data');
  service.child.kill('SIGINT');
  assert.deepEqual(await service.exited, [1, null]);
  socket.destroy();
  await clean();
});

test('kill -9 under load loses nothing that was acknowledged', async () => {
  const { env, clean } = await isolatedEnv();
  const acknowledged: string[] = [];
  for (let round = 0; round < 3; round++) {
    const service = start(env);
    const url = await service.url;
    const before = acknowledged.length;
    const clients = Array.from({ length: 8 }, async (_, client) => {
      for (let i = 0; ; i++) {
        try {
          const { status, body } = await call(url, 'POST', '/v1/projects', {
            body: { name: `r${round}c${client}i${i}` },
          });
          if (status === 201) acknowledged.push(body.id);
          if (status === 429) return;
        } catch {
          return; // the connection died with the process
        }
        if (acknowledged.length - before === 120) service.killAll();
      }
    });
    await Promise.all(clients);
    await service.exited;
  }
  assert.ok(acknowledged.length >= 360);
  const service = start({ ...env, SLUICE_ADMIN_TOKEN: 'another-token-0123456789' });
  const url = await service.url;
  const kept = new Set<string>();
  for (let cursor = ''; ; ) {
    const { body } = await call(url, 'GET', `/v1/projects?limit=100${cursor}`, { token: 'another-token-0123456789' });
    for (const project of body.data) {
      kept.add(project.id);
      assert.deepEqual(project.environments, ['production'], 'a project is whole or not there');
    }
    if (!body.page.has_more) break;
    cursor = `&cursor=${body.page.next}`;
  }
  assert.deepEqual(
    acknowledged.filter((id) => !kept.has(id)),
    [],
  );
  service.child.kill();
  await service.exited;
  await clean();
});

test('bad configuration: one line per mistake, exit code 78', async () => {
  const service = start({ SLUICE_PORT: 'x', SLUICE_REGIONS: '=', SLUICE_ADMIN_TOKEN: 'short' });
  assert.deepEqual(await service.exited, [78, null]);
  const lines = service.output().trim().split('\n');
  assert.equal(lines.length, 3);
  for (const line of lines) assert.match(line, /^sluice: SLUICE_(PORT|REGIONS|ADMIN_TOKEN) /);
});

test('another key than the database was encrypted with is refused', async () => {
  const { env, clean } = await isolatedEnv();
  const service = start(env);
  await service.url;
  service.child.kill();
  await service.exited;
  const wrong = start({ ...env, SLUICE_SECRET_KEY: Buffer.alloc(32, 1).toString('base64') });
  assert.deepEqual(await wrong.exited, [78, null]);
  assert.match(wrong.output(), /secret key is not the one/);
  await clean();
});

test('a port that is in use is reported', async () => {
  const [one, two] = [await isolatedEnv(), await isolatedEnv()];
  const service = start(one.env);
  const { port } = new URL(await service.url);
  const refused = start({ ...two.env, SLUICE_PORT: port });
  assert.deepEqual(await refused.exited, [78, null]);
  assert.match(refused.output(), /^sluice: SLUICE_PORT: port \d+ is in use by another program\./m);
  service.child.kill();
  await service.exited;
  await one.clean();
  await two.clean();
});

test('a second service on one data directory is refused', async () => {
  const { env, clean } = await isolatedEnv();
  const service = start(env);
  await service.url;
  const second = start(env);
  assert.deepEqual(await second.exited, [78, null]);
  assert.match(second.output(), /Another Sluice runs on/);
  service.killAll();
  await service.exited;
  const third = start(env);
  await third.url;
  third.child.kill();
  await third.exited;
  await clean();
});
