// The built-in proxy in worker processes: where their table comes from, and what survives the end of one of them, of the
// agent, or of both.
import assert from 'node:assert/strict';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, statSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';
import type { TLSSocket } from 'node:tls';
import { openSupervisorSocket } from '../../src/supervisor/supervisor-socket.ts';
import { onMessages, sendMessage, type ToWorker } from '../../src/traffic/worker/agent-protocol.ts';
import { suspend } from '../helpers/children.ts';
import { Wire } from '../helpers/raw-http.ts';
import { ask, getRequest, host, named, route, share, startInstance } from '../helpers/router.ts';
import { askTls, handshake } from '../helpers/router-tls.ts';
import { until } from '../helpers/wait.ts';
import { openPlane, openWorkers, type TestWorkers } from '../helpers/workers.ts';

const get = async ({ ports }: TestWorkers, options = {}) => (await ask(ports.http, options)).body;

/** Requests inside the other of two workers. */
async function holdBeside(worker: ChildProcess, { ports }: TestWorkers): Promise<Wire[]> {
  await suspend(worker.pid!);
  const held = Array.from({ length: 10 }, () => new Wire(ports.http));
  for (const wire of held) wire.write(getRequest('/held'));
  await Promise.all(held.map((wire) => wire.until('an answer', () => wire.text.includes('begun'))));
  worker.kill('SIGCONT');
  return held;
}

function tables() {
  test('a worker listens once it has a table, which then changes by environment', async () => {
    const workers = openWorkers();
    const worker = workers.start();
    await until('it has found no agent', () => worker.output().includes('waiting for the first routing table'));
    await assert.rejects(get(workers), /ECONNREFUSED/);
    const { load, plane, change } = await openPlane(workers);
    const [one, two] = [await named('one'), await named('two')];
    await load(route([share(1, 100, one)]), route([share(1, 100, one)], ['other.example']));
    await plane.listen();
    await worker.ready;
    assert.equal(await get(workers), 'one');
    await change(route([share(2, 100, two)]));
    assert.equal(await get(workers), 'two');
    assert.equal(await get(workers, { host: 'other.example' }), 'one');
    await load(route([share(1, 100, one)], ['other.example']));
    await until('the rest is dropped', async () => (await ask(workers.ports.http)).status === 404);
    assert.equal(await get(workers, { host: 'other.example' }), 'one');
  });

  test('a change that comes while a worker joins does not reach it before the table', async () => {
    const workers = openWorkers();
    const { load, plane } = await openPlane(workers);
    const app = await named('app');
    await load(route([share(1, 100, app)]), route([share(1, 100, app)], ['other.example']));
    plane.observe({
      joining: async () => {},
      catchUp: async () => plane.change(2, [route([share(2, 100, app)])]),
      moved: () => {},
      left: () => {},
    });
    await plane.listen();
    const socket = connect(workers.agentSocket);
    const got: string[] = [];
    onMessages<ToWorker>(socket, ({ type }) => void got.push(type));
    sendMessage(socket, { type: 'hello', id: 'w1', pid: process.pid, version: null });
    await until('the table', () => got.includes('end'));
    socket.destroy();
    assert.deepEqual(
      got.filter((type) => type !== 'ping'),
      ['begin', 'routes', 'end'],
    );
  });

  test('without an agent it serves routes and certificates from disk, in files for their owner only', async () => {
    const workers = openWorkers();
    const agent = await openPlane(workers);
    const instance = await named('app');
    await agent.load(route([share(1, 100, await named('old'))]), route([share(1, 100, instance)], ['other.example']));
    await agent.plane.listen();
    const serial = await agent.certify(host);
    const first = workers.start();
    await first.ready;
    await agent.change(route([share(2, 100, instance)]));
    assert.equal((await askTls(workers.ports.tls)).serial, serial);
    await agent.stop();
    first.child.kill('SIGKILL');
    await first.exited;
    const second = workers.start();
    await second.ready;
    await until('it says so', () => second.output().includes('serving from the routing table on disk'));
    assert.equal(await get(workers), 'app');
    assert.equal((await askTls(workers.ports.tls)).serial, serial);
    const files = readdirSync(workers.routingDir, { recursive: true }).map((name) =>
      join(workers.routingDir, `${name}`),
    );
    for (const file of files) assert.equal(statSync(file).mode & 0o077, 0, file);
    assert.ok(files.length >= 3);
    const next = await openPlane(workers);
    const renewed = await next.certify(host);
    await next.load(route([share(3, 100, await named('new'))]));
    await next.plane.listen();
    await until('the new table', async () => (await get(workers)) === 'new');
    await until('the new certificate', async () => (await askTls(workers.ports.tls)).serial === renewed);
  });
}

function ends() {
  test('SIGKILL of one of two: requests inside it fail, and no others', async () => {
    const workers = openWorkers();
    const agent = await openPlane(workers);
    const slow = await startInstance((request, response) => {
      if (request.url === '/held') response.write('begun');
      else response.end('ok');
    });
    await agent.load(route([share(1, 100, slow)]));
    await agent.plane.listen();
    const both = [workers.start(), workers.start()];
    await Promise.all(both.map(({ ready }) => ready));
    await until('both are known', () => agent.plane.routers().length === 2);
    const [first, second] = both.map(({ child }) => child) as [ChildProcess, ChildProcess];
    const held = { first: await holdBeside(second, workers), second: await holdBeside(first, workers) };
    first.kill('SIGKILL');
    await both[0]!.exited;
    const fresh = Array.from({ length: 200 }, () => ask(workers.ports.http, { headers: { connection: 'close' } }));
    assert.ok((await Promise.all(fresh)).every(({ body }) => body === 'ok'));
    await until('the agent knows that it has ended', () => agent.left.length === 1);
    assert.equal(agent.plane.routers().length, 1);
    await until('its requests to fail', () => held.first.every(({ closed }) => closed));
    assert.ok(held.second.every(({ closed }) => !closed));
    for (const { socket } of held.second) socket.destroy();
  });

  test('SIGTERM: uploads and tunnels end by themselves, new connections go to the next one', async () => {
    const workers = openWorkers();
    const agent = await openPlane(workers);
    const instance = await startInstance(async (request, response) => {
      response.end(`${(await request.toArray()).join('').length}`);
    });
    instance.server.on('upgrade', (_, socket) => {
      socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n');
      socket.pipe(socket);
    });
    await agent.load(route([share(1, 100, instance)]));
    await agent.plane.listen();
    const first = workers.start();
    await first.ready;
    const upload = new Wire(workers.ports.http);
    upload.write(`POST / HTTP/1.1\r\nHost: ${host}\r\nContent-Length: 10\r\n\r\nhello`);
    const tunnel = new Wire(workers.ports.http);
    tunnel.write(getRequest('/', 'Connection: Upgrade\r\nUpgrade: echo\r\n'));
    await tunnel.until('a tunnel', () => tunnel.text.includes('101'));
    await until('the upload has begun', () => instance.seen.length === 1);
    first.child.kill('SIGTERM');
    await until('it drains', () => first.output().includes('draining'));
    const second = workers.start();
    await second.ready;
    assert.equal((await ask(workers.ports.http, { method: 'POST', body: 'abc' })).body, '3');
    upload.write('world');
    await upload.until('the end of the upload', () => upload.text.endsWith('10'));
    tunnel.write('still here');
    await tunnel.until('an echo', () => tunnel.text.endsWith('still here'));
    assert.equal(first.child.exitCode, null);
    tunnel.socket.end();
    upload.socket.end();
    assert.deepEqual(await first.exited, [0, null]);
    await until('it said goodbye', () => agent.left.length === 1);
  });

  test('a worker whose supervisor is killed serves on until the next one has others in its place', async () => {
    const workers = openWorkers();
    const agent = await openPlane(workers);
    await agent.load(route([share(1, 100, await named('app'))]));
    await agent.plane.listen();
    const worker = workers.start();
    await worker.ready;
    worker.child.disconnect();
    await until('it says so', () => worker.output().includes('serving on until the next one takes over'));
    assert.equal(await get(workers), 'app');
    const next = await openSupervisorSocket(workers.dataDir);
    after(() => next.close());
    assert.ok(await next.orphans.showUp());
    assert.equal(await get(workers), 'app');
    assert.equal(next.orphans.release(), 1);
    assert.deepEqual(await worker.exited, [0, null]);
  });
}

function secrets() {
  test('a TLS session resumes at another worker, until the key is replaced', async () => {
    const workers = openWorkers();
    const agent = await openPlane(workers);
    await agent.load(route([share(1, 100, await named('app'))]));
    agent.plane.setTicketKey(Buffer.alloc(48, 1));
    await agent.plane.listen();
    await agent.certify(host);
    const first = workers.start();
    await first.ready;
    const options = { servername: host, minVersion: 'TLSv1.3' as const };
    const socket = (await handshake(workers.ports.tls, options)) as TLSSocket;
    socket.write(getRequest());
    const [session] = await once(socket, 'session');
    first.child.kill('SIGTERM');
    socket.destroy();
    await first.exited;
    const second = workers.start();
    await second.ready;
    const resumed = (await handshake(workers.ports.tls, { ...options, session })) as TLSSocket;
    assert.equal(resumed.isSessionReused(), true);
    agent.plane.setTicketKey(Buffer.alloc(48, 2));
    await agent.change(route([share(1, 100, await named('app'))])); // it follows, so it has the key as well
    const anew = (await handshake(workers.ports.tls, { ...options, session })) as TLSSocket;
    assert.equal(anew.isSessionReused(), false);
  });

  test('a challenge is answered by asking the agent', async () => {
    const workers = openWorkers();
    const agent = await openPlane(workers);
    agent.challenges.set('new.example token', 'token.thumb');
    await agent.load(route([share(1, 100, await named('app'))]));
    await agent.plane.listen();
    await workers.start().ready;
    const path = '/.well-known/acme-challenge/token';
    assert.equal(await get(workers, { host: 'new.example', path }), 'token.thumb');
    await agent.stop();
    assert.equal((await ask(workers.ports.http, { host: 'new.example', path })).status, 404);
  });
}

describe('tables of workers', tables);
describe('ends of workers', ends);
describe('what workers share', secrets);
