import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { connectDocker, defaultDockerTimeouts } from './docker-client.ts';

const streams = 100;
const calls = 20;

test('a call takes no more work while a hundred logs are followed', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-client-'));
  const server = createServer((request, response) => {
    response.writeHead(200, { 'content-type': 'application/json' });
    if (request.url === '/logs') response.flushHeaders();
    else response.end('{}');
  });
  server.listen(join(folder, 'docker.sock'));
  await once(server, 'listening');
  const { docker, close, closing } = await connectDocker(join(folder, 'docker.sock'), defaultDockerTimeouts);
  t.after(() => {
    close();
    server.close().closeAllConnections();
    rmSync(folder, { recursive: true });
  });
  const workOfCalls = async () => {
    const before = process.cpuUsage();
    for (let count = 0; count < calls; count++) await docker.request('GET', '/info', { signal: closing });
    const { user, system } = process.cpuUsage(before);
    return user + system;
  };
  await workOfCalls();
  const alone = await workOfCalls();
  const followed = Array.from({ length: streams }, () => docker.stream('GET', '/logs', { signal: closing }));
  await Promise.all(followed);
  const beside = await workOfCalls();
  assert.ok(beside < 10 * alone, `${calls} calls took ${beside / 1000} ms of computing, ${alone / 1000} ms before`);
});
