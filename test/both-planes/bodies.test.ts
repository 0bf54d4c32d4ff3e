// Bodies of any size pass through a data plane at the pace of the slower end.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type IncomingMessage, request, type ServerResponse } from 'node:http';
import { describe, test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { Wire } from '../helpers/raw-http.ts';
import { getRequest, host, serveInstance, startInstance } from '../helpers/router.ts';
import { until } from '../helpers/wait.ts';

const megabyte = 1024 * 1024;

async function upload(port: number, chunks: number, headers = {}): Promise<IncomingMessage> {
  const outgoing = request({ port, host: '127.0.0.1', method: 'PUT', headers: { host, ...headers } });
  const answered = once(outgoing, 'response') as Promise<[IncomingMessage]>;
  const chunk = Buffer.alloc(megabyte, 'u');
  for (let i = 0; i < chunks; i++) if (!outgoing.write(chunk)) await once(outgoing, 'drain');
  outgoing.end();
  return (await answered)[0];
}

function bodies() {
  test('300 MB down and 300 MB up pass through without being buffered', async () => {
    const chunk = Buffer.alloc(megabyte, 'd');
    const instance = await startInstance(async (request, response) => {
      let received = 0;
      for await (const part of request) received += part.length;
      if (received > 0) return response.end(String(received));
      for (let i = 0; i < 300; i++) if (!response.write(chunk)) await once(response, 'drain');
      response.end();
    });
    const router = await serveInstance(instance);
    const before = process.memoryUsage().rss;
    let highest = 0;
    const look = () => {
      highest = Math.max(highest, process.memoryUsage.rss() - before);
    };
    const outgoing = request({ port: router.port(), host: '127.0.0.1', headers: { host } }).end();
    const [incoming] = (await once(outgoing, 'response')) as [IncomingMessage];
    let received = 0;
    for await (const part of incoming) {
      received += part.length;
      look();
    }
    assert.equal(received, 300 * megabyte);
    const timer = setInterval(look, 10);
    const answer = await upload(router.port(), 300);
    clearInterval(timer);
    assert.equal(String(await answer.toArray()), String(300 * megabyte));
    assert.ok(highest < 200 * megabyte, `${Math.round(highest / megabyte)} MiB more than before`);
  });

  test('the head of a response does not wait for its body, as followers of events expect', async () => {
    const held = Promise.withResolvers<ServerResponse>();
    const instance = await startInstance((_, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders();
      held.resolve(response);
    });
    const router = await serveInstance(instance);
    const outgoing = request({ port: router.port(), host: '127.0.0.1', headers: { host } }).end();
    const [incoming] = (await once(outgoing, 'response')) as [IncomingMessage];
    assert.equal(incoming.headers['content-type'], 'text/event-stream');
    (await held.promise).end('data: 1\n\n');
    assert.equal(String(await incoming.toArray()), 'data: 1\n\n');
  });

  test('a response that breaks off after its head is a head and a broken body', async () => {
    const held = Promise.withResolvers<ServerResponse>();
    const instance = await startInstance((_, response) => {
      response.writeHead(200, { 'content-length': 5 }).flushHeaders();
      held.resolve(response);
    });
    const router = await serveInstance(instance);
    const outgoing = request({ port: router.port(), host: '127.0.0.1', headers: { host } }).end();
    const [incoming] = (await once(outgoing, 'response')) as [IncomingMessage];
    (await held.promise).destroy();
    await assert.rejects(incoming.toArray(), { message: 'aborted' });
  });

  test('a client that does not read holds the instance back', async () => {
    let written = 0;
    const chunk = Buffer.alloc(megabyte, 'd');
    const instance = await startInstance(async (_, response) => {
      for (let i = 0; i < 200; i++) {
        written++;
        if (!response.write(chunk)) await once(response, 'drain');
      }
      response.end();
    });
    const router = await serveInstance(instance);
    const outgoing = request({ port: router.port(), host: '127.0.0.1', headers: { host } }).end();
    const [incoming] = (await once(outgoing, 'response')) as [IncomingMessage];
    // Held back: no further megabyte for many turns of the event loop.
    for (let last = -1, quiet = 0; quiet < 2000; quiet = last === written ? quiet + 1 : 0) {
      last = written;
      await turn();
    }
    assert.ok(written < 60, `${written} of 200 MB were taken`);
    let received = 0;
    for await (const part of incoming) received += part.length;
    assert.equal(received, 200 * megabyte);
  });

  test('an instance that does not read holds the client back', async () => {
    let release = () => {};
    const instance = await startInstance((request, response) => {
      release = () => request.resume().on('end', () => response.end('done'));
    });
    const router = await serveInstance(instance);
    const outgoing = request({ port: router.port(), host: '127.0.0.1', method: 'POST', headers: { host } });
    const answered = once(outgoing, 'response');
    const chunk = Buffer.alloc(megabyte, 'u');
    let sent = 0;
    const sending = (async () => {
      for (; sent < 100; sent++) if (!outgoing.write(chunk)) await once(outgoing, 'drain');
      outgoing.end();
    })();
    for (let last = -1, quiet = 0; quiet < 2000 || instance.seen.length === 0; ) {
      quiet = last === sent ? quiet + 1 : 0;
      last = sent;
      await turn();
    }
    assert.ok(sent < 60, `${sent} of 100 MB were taken`);
    release();
    await Promise.all([sending, answered]);
  });

  test('a client that goes away ends the request at the instance, during upload and download', async () => {
    const instance = await startInstance((request, response) => {
      if (request.method === 'GET') response.write('first');
    });
    const router = await serveInstance(instance);
    for (const head of [getRequest(), `POST / HTTP/1.1\r\nHost: ${host}\r\nContent-Length: 10\r\n\r\n12345`]) {
      instance.seen.length = 0;
      const wire = new Wire(router.port());
      wire.write(head);
      await until('it is asked', () => instance.seen.length === 1);
      wire.socket.destroy();
      await until('the connection to the instance closes', () => instance.seen[0]!.socket.destroyed);
    }
    assert.equal((await router.counted(1)).errors, 0);
  });
}

describe('bodies', bodies);
