// What the built-in data plane carries: headers, every kind of response, bodies of any size at any pace, upgraded
// connections; and its limits.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { describe, test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { statusOf, Wire } from '../helpers/raw-http.ts';
import { ask, host, named, share, startInstance, startRouter, type TestInstance } from '../helpers/router.ts';
import { until } from '../helpers/wait.ts';

const megabyte = 1024 * 1024;
const get = (path = '/', more = '') => `GET ${path} HTTP/1.1\r\nHost: ${host}\r\n${more}\r\n`;

async function serving(instance: TestInstance, limits = {}) {
  const router = await startRouter(limits);
  router.serve(share(1, 100, instance));
  return router;
}

function headers() {
  test('hop-by-hop headers end here, those that Connection names too; Host and the rest arrive as sent', async () => {
    const instance = await named('ok');
    const router = await serving(instance);
    const wire = new Wire(router.port());
    const hop = 'Connection: close, X-Secret, Host\r\nX-Secret: 1\r\nKeep-Alive: timeout=5\r\nTE: trailers\r\n';
    wire.write(get('/a?b=c', `${hop}Proxy-Connection: x\r\nProxy: x\r\nX-Kept: one\r\nX-Kept: two\r\n`));
    await wire.untilClosed();
    const [seen] = instance.seen;
    assert.equal(seen!.url, '/a?b=c');
    assert.equal(seen!.headers.host, host);
    assert.equal(seen!.headers['x-kept'], 'one, two');
    for (const name of ['x-secret', 'keep-alive', 'te', 'proxy-connection', 'proxy']) {
      assert.equal(seen!.headers[name], undefined, name);
    }
  });

  test('forwarded headers come from the proxy, not from the client', async () => {
    const instance = await named('ok');
    const router = await serving(instance);
    const lies = {
      'x-forwarded-for': '9.9.9.9',
      'X-Forwarded-User': 'root',
      forwarded: 'for=9.9.9.9',
      'x-real-ip': '9',
    };
    await ask(router.port(), { host: `${host}:8000`, headers: lies });
    const { headers } = instance.seen[0]!;
    assert.equal(headers['x-forwarded-for'], '127.0.0.1');
    assert.equal(headers['x-forwarded-proto'], 'http');
    assert.equal(headers['x-forwarded-host'], `${host}:8000`);
    assert.equal(headers['x-forwarded-port'], String(router.port()));
    assert.equal(headers.forwarded, `for=127.0.0.1;proto=http;host="${host}:8000"`);
    assert.equal(headers['x-forwarded-user'], undefined);
    assert.equal(headers['x-real-ip'], undefined);
  });

  test('hop-by-hop headers of a response end here too; several cookies arrive', async () => {
    const instance = await startInstance((_, response) => {
      response.writeHead(200, [
        ...['Set-Cookie', 'a=1', 'Set-Cookie', 'b=2', 'Connection', 'keep-alive, x-private', 'X-Private', '1'],
        ...['Proxy-Authenticate', 'Basic', 'X-Latin', 'caf\xe9', 'Content-Length', '2'],
      ]);
      response.end(Buffer.from('ok')); // with a string, Node writes the head as UTF-8
    });
    const router = await serving(instance);
    const { headers, body } = await ask(router.port());
    assert.equal(body, 'ok');
    assert.deepEqual(headers['set-cookie'], ['a=1', 'b=2']);
    assert.equal(headers['x-latin'], 'caf\xe9');
    assert.equal(headers['x-private'], undefined);
    assert.equal(headers['proxy-authenticate'], undefined);
  });
}

function answers() {
  test('HEAD, 204 and 304 have no body and leave the connection in order', async () => {
    const instance = await startInstance((request, response) => {
      if (request.url === '/304') response.writeHead(304, { etag: '"x"' });
      else if (request.url === '/204') response.writeHead(204);
      else response.writeHead(200, { 'content-length': '5' });
      response.end(request.url === '/' && request.method === 'GET' ? 'hello' : undefined);
    });
    const router = await serving(instance);
    const wire = new Wire(router.port());
    for (const path of ['/204', '/304']) wire.write(get(path));
    wire.write(get().replace('GET', 'HEAD'));
    wire.write(get('/', 'Connection: close\r\n'));
    const text = await wire.untilClosed();
    const statuses = [...text.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => status);
    assert.deepEqual(statuses, ['204', '304', '200', '200']);
    assert.equal(text.match(/hello/g)!.length, 1);
    assert.match(text, /hello$/);
  });

  test('trailers arrive', async () => {
    const instance = await startInstance((_, response) => {
      response.writeHead(200, { trailer: 'X-Checksum' });
      response.write('body');
      response.addTrailers({ 'X-Checksum': 'abc', 'X-Count': '2' });
      response.end();
    });
    const router = await serving(instance);
    const { body, trailers, headers } = await ask(router.port());
    assert.equal(body, 'body');
    assert.equal(headers.trailer, 'X-Checksum');
    assert.deepEqual({ ...trailers }, { 'x-checksum': 'abc', 'x-count': '2' });
  });

  test('informational responses are passed on before the final one', async () => {
    const instance = await startInstance((_, response) => {
      response.writeEarlyHints({ link: '</style.css>; rel=preload' }, () => response.end('page'));
    });
    const router = await serving(instance);
    const wire = new Wire(router.port());
    wire.write(get('/', 'Connection: close\r\n'));
    const text = await wire.untilClosed();
    assert.match(text, /^HTTP\/1\.1 103 [\s\S]*rel=preload[\s\S]*HTTP\/1\.1 200 /);
  });

  test('a client of HTTP/1.0 gets the body until the end of the connection', async () => {
    const instance = await startInstance((_, response) => {
      response.write('no length ');
      response.end('given');
    });
    const router = await serving(instance);
    const wire = new Wire(router.port());
    wire.write(get().replace('HTTP/1.1', 'HTTP/1.0'));
    assert.match(await wire.untilClosed(), /\r\n\r\nno length given$/);
  });

  test('Expect: 100-continue is answered once an instance takes the body', async () => {
    const instance = await startInstance((request, response) => request.pipe(response));
    const router = await serving(instance);
    const wire = new Wire(router.port());
    wire.write(`POST / HTTP/1.1\r\nHost: ${host}\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n`);
    assert.match(await wire.head(), /^HTTP\/1\.1 100 /);
    wire.write('body');
    await wire.until('the answer', () => wire.text.includes('body'));
    assert.match(wire.text, /HTTP\/1\.1 200 /);
    assert.equal(instance.seen[0]!.headers.expect, undefined);
    wire.socket.destroy();
  });

  test('connections to instances are kept', async () => {
    const instance = await named('ok');
    const router = await serving(instance);
    for (let i = 0; i < 50; i++) await ask(router.port(), i % 2 === 0 ? {} : { method: 'POST', body: 'x' });
    assert.equal(instance.connections(), 1);
  });

  test('a connection stays usable after an error response to a request with a body', async () => {
    const router = await serving(await named('ok'));
    const wire = new Wire(router.port());
    wire.write('POST / HTTP/1.1\r\nHost: unknown.example\r\nContent-Length: 4\r\n\r\n');
    await wire.until('the answer', () => statusOf(wire.text) === 404);
    wire.write(`body${get('/', 'Connection: close\r\n')}`);
    assert.match(await wire.untilClosed(), /HTTP\/1\.1 200 [\s\S]*ok$/);
  });

  test('a response before the end of the upload arrives', async () => {
    const instance = await startInstance((_, response) => {
      response.writeHead(413);
      response.end('too much');
    });
    const router = await serving(instance);
    const wire = new Wire(router.port());
    wire.write(`POST / HTTP/1.1\r\nHost: ${host}\r\nContent-Length: 2000000\r\n\r\n${'x'.repeat(1000)}`);
    await wire.until('the answer', () => wire.text.includes('too much'));
    assert.equal(statusOf(wire.text), 413);
    wire.socket.destroy();
  });
}

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
    const router = await serving(instance);
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
    const router = await serving(instance);
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
    const router = await serving(instance);
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
    const router = await serving(instance);
    for (const head of [get(), `POST / HTTP/1.1\r\nHost: ${host}\r\nContent-Length: 10\r\n\r\n12345`]) {
      instance.seen.length = 0;
      const wire = new Wire(router.port());
      wire.write(head);
      await until('it is asked', () => instance.seen.length === 1);
      wire.socket.destroy();
      await until('the connection to the instance closes', () => instance.seen[0]!.socket.destroyed);
    }
    assert.equal(router.counted(1).errors, 0);
  });
}

async function echoing(): Promise<TestInstance> {
  const instance = await startInstance((_, response) => {
    response.writeHead(426, { 'content-type': 'text/plain' });
    response.end('upgrade to echo');
  });
  instance.server.on('upgrade', (request, socket) => {
    instance.seen.push(request);
    if (request.headers.upgrade === 'refused') {
      socket.end('HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno');
      return;
    }
    socket.write(
      'HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nX-App: 1\r\n\r\nwelcome ',
    );
    socket.pipe(socket);
  });
  return instance;
}

function upgrades() {
  const ws = 'Connection: keep-alive, Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: abc\r\n';

  test('a WebSocket is a tunnel, with the headers of any request; an end at the client ends both', async () => {
    const instance = await echoing();
    const router = await serving(instance);
    const wire = new Wire(router.port());
    wire.write(get('/socket', `${ws}X-Forwarded-For: 9.9.9.9\r\n`));
    assert.match(await wire.head(), /^HTTP\/1\.1 101 [\s\S]*upgrade: websocket[\s\S]*x-app: 1/i);
    wire.write('\x81\x05hello');
    await wire.until('the echo', () => wire.text.endsWith('welcome \x81\x05hello'));
    const { headers } = instance.seen[0]!;
    assert.equal(headers.upgrade, 'websocket');
    assert.match(headers.connection!, /^upgrade$/i);
    assert.equal(headers['sec-websocket-key'], 'abc');
    assert.equal(headers['x-forwarded-for'], '127.0.0.1');
    assert.deepEqual(router.counted(1), { requests: 1, errors: 0 });
    wire.socket.end();
    await wire.untilClosed();
  });

  test('what the client sent along with the request, and a megabyte more, arrives in order', async () => {
    const router = await serving(await echoing());
    const wire = new Wire(router.port());
    const big = 'x'.repeat(megabyte);
    wire.write(`${get('/', ws)}early ${big} late`);
    await wire.until('the echo', () => wire.text.endsWith(`welcome early ${big} late`));
    wire.socket.end();
    await wire.untilClosed();
  });

  test('an instance that closes closes the client', async () => {
    const instance = await echoing();
    const router = await serving(instance);
    const wire = new Wire(router.port());
    wire.write(get('/', ws));
    await wire.until('the tunnel', () => wire.text.endsWith('welcome '));
    instance.seen[0]!.socket.destroy();
    await wire.untilClosed();
  });

  test('where the instance does not switch, its response is passed on and the connection closes', async () => {
    const instance = await echoing();
    const router = await serving(instance);
    const wire = new Wire(router.port());
    wire.write(get('/', ws.replace('websocket', 'refused')) + get('/hidden'));
    const text = await wire.untilClosed();
    assert.equal(statusOf(text), 403);
    assert.match(text, /\r\n\r\nno$/);
    assert.equal(instance.seen.length, 1);
  });

  test('an upgrade to HTTP/2 is ignored, one with a body is refused', async () => {
    const instance = await named('plain');
    const router = await serving(instance);
    const plain = new Wire(router.port());
    plain.write(get('/', 'Connection: Upgrade, HTTP2-Settings, close\r\nUpgrade: h2c\r\nHTTP2-Settings: x\r\n'));
    assert.match(await plain.untilClosed(), /^HTTP\/1\.1 200 [\s\S]*plain/);
    assert.equal(instance.seen[0]!.headers.upgrade, undefined);
    const withBody = new Wire(router.port());
    withBody.write(get('/', `${ws}Content-Length: 3\r\n`) + 'abc');
    assert.equal(statusOf(await withBody.untilClosed()), 400);
    assert.equal(instance.seen.length, 1);
  });

  test('a stop cuts tunnels off when the time is up', async () => {
    const router = await serving(await echoing());
    const wire = new Wire(router.port());
    wire.write(get('/', ws));
    await wire.until('the tunnel', () => wire.text.endsWith('welcome '));
    await router.stop(50);
    await wire.untilClosed();
  });
}

function limits() {
  test('431 for a head that is too large or has too many lines', async () => {
    const router = await serving(await named('ok'), { headerBytes: 4096, headerCount: 20 });
    const large = new Wire(router.port());
    large.write(get('/', `X-Large: ${'x'.repeat(5000)}\r\n`));
    assert.equal(statusOf(await large.untilClosed()), 431);
    const many = new Wire(router.port());
    many.write(get('/', 'X: y\r\n'.repeat(20)));
    assert.equal(statusOf(await many.untilClosed()), 431);
    assert.equal((await ask(router.port())).body, 'ok');
  });

  test('408 for a head that is not completed', async () => {
    const router = await serving(await named('ok'), { requestHeadMs: 100 });
    const wire = new Wire(router.port());
    wire.write('GET / HTTP/1.1\r\nHost: ');
    assert.equal(statusOf(await wire.untilClosed()), 408);
  });

  test('bodies without progress are cut off, in either direction', async () => {
    const stalling = await startInstance((request, response) => {
      if (request.method === 'GET') response.write('first');
    });
    const router = await serving(stalling, { idleMs: 200, answerHeadMs: 100, retryMs: 50 });
    const down = new Wire(router.port());
    down.write(get());
    assert.match(await down.untilClosed(), /first/);
    const up = new Wire(router.port());
    up.write(`POST / HTTP/1.1\r\nHost: ${host}\r\nContent-Length: 10\r\n\r\n12345`);
    await up.untilClosed();
    assert.equal(router.counted(1).errors, 1);
  });

  test('a connection without a request is closed after a while', async () => {
    const router = await serving(await named('ok'), { keepAliveMs: 100 });
    const wire = new Wire(router.port());
    wire.write(get());
    assert.match(await wire.untilClosed(), /ok$/);
  });
}

describe('headers', headers);
describe('answers', answers);
describe('bodies', bodies);
describe('upgrades', upgrades);
describe('limits', limits);
