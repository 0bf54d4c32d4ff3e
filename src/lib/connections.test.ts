import assert from 'node:assert/strict';
import { once } from 'node:events';
import { Agent, createServer, get, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { buffer, text } from 'node:stream/consumers';
import { type TestContext, test } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import { until } from '../../test/helpers/wait.ts';
import { cutOffStalledReaders, trackConnections } from './connections.ts';

const stallMs = 300;
const large = Buffer.alloc(32 * 1024 * 1024);

interface Options {
  cutAfterMs?: number;
  keepAliveTimeout?: number;
}

/** A connection to a server that cuts off, with a request on it. */
async function ask(t: TestContext, listener: RequestListener, { cutAfterMs = stallMs, ...options }: Options = {}) {
  const server = createServer({ keepAliveTimeoutBuffer: 0, ...options }, listener);
  cutOffStalledReaders(server, cutAfterMs);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  // Not the first connection: it may be a stranger's, who looks for a service that had this port before.
  const asked = once(server, 'request') as Promise<[IncomingMessage]>;
  const client = connect((server.address() as AddressInfo).port, '127.0.0.1');
  client.on('error', () => {});
  t.after(() => {
    client.destroy();
    server.closeAllConnections();
    server.close();
  });
  client.pause();
  const connection = options.keepAliveTimeout === undefined ? 'close' : 'keep-alive';
  client.write(`GET / HTTP/1.1\r\nHost: x\r\nConnection: ${connection}\r\n\r\n`);
  const [{ socket }] = await asked;
  const limited = () => until('the connection to have a time limit', () => (socket.timeout ?? 0) > 0);
  return { client, limited, cut: new Promise((resolve) => socket.once('close', resolve)) };
}

async function receivedBytes(client: Socket, pauseMs: number): Promise<number> {
  let bytes = 0;
  for await (const chunk of client) {
    bytes += chunk.length;
    if (pauseMs > 0) await wait(pauseMs);
  }
  return bytes;
}

test('a client that takes nothing is disconnected', async (t) => {
  const { cut } = await ask(t, (_request, response) => void response.end(large));
  await cut;
});

test('a client that takes it slowly gets all of it', async (t) => {
  // Long enough for a busy machine to read something meanwhile, and shorter than all of it takes.
  const cutAfterMs = 5000;
  const { client } = await ask(t, (_request, response) => void response.end(large), { cutAfterMs });
  const begun = performance.now();
  assert.ok((await receivedBytes(client, 15)) > large.length);
  assert.ok(performance.now() - begun > cutAfterMs);
});

test('a client that waits for its response is not disconnected', async (t) => {
  const { client } = await ask(t, (_request, response) => void setTimeout(() => response.end('late'), 4 * stallMs));
  assert.ok((await receivedBytes(client, 0)) > 4);
});

test('a response that stalls after a long silence is cut off too', async (t) => {
  const { cut } = await ask(t, (_request, response) => void setTimeout(() => response.end(large), 2 * stallMs));
  await cut;
});

test('a client that has caught up may wait for the rest of its response', async (t) => {
  const { client, limited } = await ask(t, (_request, response) => {
    response.write(large);
    response.once('drain', () => setTimeout(() => response.end('rest'), 4 * stallMs));
  });
  await limited();
  assert.ok((await receivedBytes(client, 0)) > large.length + 4);
});

test('an idle connection is closed, also after a response that was taken slowly', async (t) => {
  const options = { keepAliveTimeout: 2 * stallMs };
  for (const body of ['small', large]) {
    const { client, cut, limited } = await ask(t, (_request, response) => void response.end(body), options);
    await limited();
    assert.ok((await receivedBytes(client, 0)) > body.length);
    await cut;
  }
});

async function startServer(respond: (request: IncomingMessage, response: ServerResponse) => void) {
  const server = createServer(respond);
  const connections = trackConnections(server);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return { connections, port, url: `http://127.0.0.1:${port}/` };
}

test('a response that was ended and not yet taken arrives whole, then its connection closes', async () => {
  const size = 32 * 1024 * 1024;
  const ended = Promise.withResolvers<ServerResponse>();
  const { connections, url } = await startServer((_, response) => {
    response.end(Buffer.alloc(size));
    ended.resolve(response);
  });
  const agent = new Agent({ keepAlive: true });
  const [response] = (await once(get(url, { agent }), 'response')) as [IncomingMessage];
  assert.ok((await ended.promise).writableEnded);
  const closed = connections.closeWhenIdle();
  assert.equal((await buffer(response)).length, size);
  await closed;
  agent.destroy();
});

test('connections without a request close, one whose request is on its way gets its response', async () => {
  const { connections, port, url } = await startServer((_, response) => void response.end('late'));
  const silent = connect(port, '127.0.0.1');
  const halfway = connect(port, '127.0.0.1');
  await Promise.all([once(silent, 'connect'), once(halfway, 'connect')]);
  halfway.write('GET / HTTP/1.1\r\n');
  await text((await once(get(url, { agent: false }), 'response'))[0]); // by then the server has read the half
  const closed = connections.closeWhenIdle();
  await once(silent.resume(), 'close');
  halfway.write('Host: a\r\nConnection: close\r\n\r\n');
  assert.match(await text(halfway), /^HTTP\/1\.1 200 OK\r\n[\s\S]*\r\n\r\nlate$/);
  await closed;
});
