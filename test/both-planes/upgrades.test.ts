// Connections that switch protocols, and the limits of requests and connections.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { describe, test } from 'node:test';
import { statusOf, Wire } from '../helpers/raw-http.ts';
import { ask, getRequest, host, named, serveInstance, startInstance, type TestInstance } from '../helpers/router.ts';
import { onPlane } from '../helpers/router-plane.ts';

const megabyte = 1024 * 1024;
const key = 'dGhlIHNhbXBsZSBub25jZQ==';

const acceptOf = (key: string): string =>
  createHash('sha1').update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest('base64');

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
    const accept = acceptOf(request.headers['sec-websocket-key']!);
    socket.write(
      `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${accept}\r\nX-App: 1\r\n\r\nwelcome `,
    );
    socket.pipe(socket);
  });
  return instance;
}

function upgrades() {
  const ws = `Connection: keep-alive, Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: ${key}\r\n`;

  test('a WebSocket is a tunnel, with the headers of any request; an end at the client ends both', async () => {
    const instance = await echoing();
    const router = await serveInstance(instance);
    const wire = new Wire(router.port());
    wire.write(getRequest('/socket', `${ws}X-Forwarded-For: 9.9.9.9\r\n`));
    assert.match(await wire.head(), /^HTTP\/1\.1 101 [\s\S]*upgrade: websocket[\s\S]*x-app: 1/i);
    wire.write('\x81\x05hello');
    await wire.until('the echo', () => wire.text.endsWith('welcome \x81\x05hello'));
    const { headers } = instance.seen[0]!;
    assert.equal(headers.upgrade, 'websocket');
    assert.match(headers.connection!, /^upgrade$/i);
    assert.equal(headers['sec-websocket-key'], key);
    assert.equal(headers['x-forwarded-for'], '127.0.0.1');
    const requests = onPlane({ builtin: 1, haproxy: 0 }); // HAProxy counts what has ended
    assert.deepEqual(await router.counted(1), { requests, errors: 0, clientErrors: 0 });
    wire.socket.end();
    await wire.untilClosed();
    assert.deepEqual(await router.counted(1), { requests: 1, errors: 0, clientErrors: 0 });
  });

  test('what the client sent along with the request, and a megabyte more, arrives in order', async () => {
    const router = await serveInstance(await echoing());
    const wire = new Wire(router.port());
    const big = 'x'.repeat(megabyte);
    wire.write(`${getRequest('/', ws)}early ${big} late`);
    await wire.until('the echo', () => wire.text.endsWith(`welcome early ${big} late`));
    wire.socket.end();
    await wire.untilClosed();
  });

  test('an instance that closes closes the client', async () => {
    const instance = await echoing();
    const router = await serveInstance(instance);
    const wire = new Wire(router.port());
    wire.write(getRequest('/', ws));
    await wire.until('the tunnel', () => wire.text.endsWith('welcome '));
    instance.seen[0]!.socket.destroy();
    await wire.untilClosed();
  });

  test('where the instance does not switch, its response is passed on and the connection closes', async () => {
    const instance = await echoing();
    const router = await serveInstance(instance);
    const wire = new Wire(router.port());
    wire.write(getRequest('/', ws.replace('websocket', 'refused')) + getRequest('/hidden'));
    const text = await wire.untilClosed();
    assert.equal(statusOf(text), 403);
    assert.match(text, /\r\n\r\nno$/);
    assert.equal(instance.seen.length, 1);
  });

  test('an upgrade to HTTP/2 is ignored, one with a body is refused, or ignored, too', async () => {
    const instance = await named('plain');
    const router = await serveInstance(instance);
    const plain = new Wire(router.port());
    plain.write(getRequest('/', 'Connection: Upgrade, HTTP2-Settings, close\r\nUpgrade: h2c\r\nHTTP2-Settings: x\r\n'));
    assert.match(await plain.untilClosed(), /^HTTP\/1\.1 200 [\s\S]*plain/);
    assert.equal(instance.seen[0]!.headers.upgrade, undefined);
    const withBody = new Wire(router.port());
    withBody.write(
      `${getRequest('/', `${ws.replace('keep-alive', 'close')}Content-Length: 3\r\n`)}abc${getRequest('/hidden')}`,
    );
    const text = await withBody.untilClosed();
    assert.equal(statusOf(text), onPlane({ builtin: 400, haproxy: 200 }));
    assert.equal(text.match(/HTTP\/1\.1/g)!.length, 1);
    assert.equal(instance.seen.length, onPlane({ builtin: 1, haproxy: 2 }));
    assert.equal(instance.seen.at(-1)!.headers.upgrade, undefined);
  });

  test('a stop cuts tunnels off when the time is up', async () => {
    const router = await serveInstance(await echoing());
    const wire = new Wire(router.port());
    wire.write(getRequest('/', ws));
    await wire.until('the tunnel', () => wire.text.endsWith('welcome '));
    await router.stop(50);
    await wire.untilClosed();
  });
}

function limits() {
  test('431 (HAProxy: 400) for a head that is too large or has too many lines', async () => {
    const router = await serveInstance(await named('ok'), { headerBytes: 4096, headerCount: 20 });
    const large = new Wire(router.port());
    large.write(getRequest('/', `X-Large: ${'x'.repeat(5000)}\r\n`));
    const tooLarge = onPlane({ builtin: 431, haproxy: 400 });
    assert.equal(statusOf(await large.untilClosed()), tooLarge);
    const many = new Wire(router.port());
    many.write(getRequest('/', 'X: y\r\n'.repeat(20)));
    assert.equal(statusOf(await many.untilClosed()), tooLarge);
    assert.equal((await ask(router.port())).body, 'ok');
  });

  test('408 for a head that is not completed', async () => {
    const router = await serveInstance(await named('ok'), { requestHeadMs: 100 });
    const wire = new Wire(router.port());
    wire.write('GET / HTTP/1.1\r\nHost: ');
    assert.equal(statusOf(await wire.untilClosed()), 408);
  });

  test('bodies without progress are cut off, in either direction', async () => {
    const stalling = await startInstance((request, response) => {
      if (request.method === 'GET') response.write('first');
    });
    const router = await serveInstance(stalling, { idleMs: 200, answerHeadMs: 100, retryMs: 50 });
    const down = new Wire(router.port());
    down.write(getRequest());
    assert.match(await down.untilClosed(), /first/);
    const up = new Wire(router.port());
    up.write(`POST / HTTP/1.1\r\nHost: ${host}\r\nContent-Length: 10000\r\n\r\n12345`);
    await up.untilClosed();
    assert.equal((await router.counted(1)).errors, 1);
  });

  test('a connection without a request is closed after a while', async () => {
    const router = await serveInstance(await named('ok'), { keepAliveMs: 100 });
    const wire = new Wire(router.port());
    wire.write(getRequest());
    assert.match(await wire.untilClosed(), /ok$/);
  });
}

describe('upgrades', upgrades);
describe('limits', limits);
