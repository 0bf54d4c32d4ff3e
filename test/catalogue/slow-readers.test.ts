// Clients that ask for a large file and do not read it: they are disconnected, there are not too many of them, and what
// waits for them does not fill the memory.
import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, truncateSync, writeFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { isolatedEnv } from '../helpers/app.ts';
import { childrenOf } from '../helpers/children.ts';
import { Wire } from '../helpers/raw-http.ts';
import { startService } from '../helpers/service.ts';
import { until } from '../helpers/wait.ts';
import { collectCleanup } from './fixture.ts';

const readers = 300;
const megabyte = 1024 * 1024;

let url = '';
let port = 0;
let control = 0;
const clients: Socket[] = [];
const cleanup = collectCleanup();
after(cleanup.undoAll);

before(async () => {
  const { env, dataDir, clean } = await isolatedEnv();
  cleanup.after(clean);
  const film = join(dataDir, 'catalogue/media/a/film.mp4');
  mkdirSync(join(film, '..'), { recursive: true });
  writeFileSync(film, '');
  truncateSync(film, 50 * megabyte);
  const service = startService({
    ...env,
    SLUICE_STALL_TIMEOUT_S: '2',
    SLUICE_CONNECTIONS_PER_ADDRESS: String(readers + 20),
    SLUICE_ROUTER_WORKERS: '1',
  });
  cleanup.after(async () => {
    for (const client of clients) client.destroy();
    service.child.kill('SIGTERM');
    await service.exited;
  });
  url = await service.url;
  port = Number(new URL(url).port);
  control = childrenOf(service.child.pid!, 'control.js')[0]!;
});

const residentBytes = () => Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${control}/status`, 'utf8'))![1]) * 1024;

const openConnections = async () => {
  const text = await (await fetch(`${url}/metrics`)).text();
  return Number(/^nodejs_active_resources\{type="TCPSocketWrap"\} (\d+)/m.exec(text)?.[1] ?? 0);
};

test(`${readers} clients that do not read cost little memory, and are disconnected`, async () => {
  await fetch(`${url}/media/a/film.mp4`).then((response) => response.arrayBuffer());
  const before = residentBytes();
  let most = 0;
  for (let count = 0; count < readers; count++) {
    const client = connect(port, '127.0.0.1').on('error', () => {});
    client.pause();
    client.write('GET /media/a/film.mp4 HTTP/1.1\r\nHost: x\r\n\r\n');
    clients.push(client);
  }
  await until('they are connected', async () => (await openConnections()) >= readers);
  await until('they are disconnected', async () => {
    most = Math.max(most, residentBytes());
    return (await openConnections()) < 20;
  });
  const grown = Math.round((most - before) / megabyte);
  console.log(`${readers} readers: ${grown} MB more than ${Math.round(before / megabyte)} MB`);
  assert.ok(grown < 100, `${grown} MB`);
});

test('beyond the limit for one address, connections are closed', async () => {
  const open = Array.from({ length: readers + 40 }, () => new Wire(port));
  clients.push(...open.map(({ socket }) => socket));
  await until('some are closed', () => open.filter(({ closed }) => closed).length >= 10);
  assert.ok(open.filter(({ closed }) => !closed).length <= readers + 20);
});
