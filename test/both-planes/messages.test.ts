// What a data plane carries: headers, and every kind of response.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { statusOf, Wire } from '../helpers/raw-http.ts';
import { ask, getRequest, host, named, serveInstance, startInstance } from '../helpers/router.ts';
import { onPlane, plane } from '../helpers/router-plane.ts';

function headers() {
  test('hop-by-hop headers end here, those that Connection names too (not with HAProxy); Host and the rest arrive as sent', async () => {
    const instance = await named('ok');
    const router = await serveInstance(instance);
    const wire = new Wire(router.port());
    const hop = 'Connection: close, X-Secret, Host\r\nX-Secret: 1\r\nKeep-Alive: timeout=5\r\nTE: trailers\r\n';
    wire.write(getRequest('/a?b=c', `${hop}Proxy-Connection: x\r\nProxy: x\r\nX-Kept: one\r\nX-Kept: two\r\n`));
    await wire.untilClosed();
    const [seen] = instance.seen;
    assert.equal(seen!.url, '/a?b=c');
    assert.equal(seen!.headers.host, host);
    assert.equal(seen!.headers['x-kept'], 'one, two');
    for (const name of ['keep-alive', 'te', 'proxy-connection', 'proxy']) {
      assert.equal(seen!.headers[name], undefined, name);
    }
    assert.equal(seen!.headers['x-secret'], onPlane({ builtin: undefined, haproxy: '1' }));
  });

  test('forwarded headers come from the proxy, not from the client', async () => {
    const instance = await named('ok');
    const router = await serveInstance(instance);
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
    await ask(router.port(), { host: `${host}:8000` });
    assert.deepEqual(instance.seen[1]!.headers, headers, 'the same for a client that sends none of them');
  });

  test('hop-by-hop headers of a response end here too; several cookies arrive', async () => {
    const instance = await startInstance((_, response) => {
      response.writeHead(200, [
        ...['Set-Cookie', 'a=1', 'Set-Cookie', 'b=2', 'Connection', 'keep-alive, x-private', 'X-Private', '1'],
        ...['Proxy-Authenticate', 'Basic', 'X-Latin', 'caf\xe9', 'Content-Length', '2'],
      ]);
      response.end(Buffer.from('ok')); // with a string, Node writes the head as UTF-8
    });
    const router = await serveInstance(instance);
    const { headers, body } = await ask(router.port());
    assert.equal(body, 'ok');
    assert.deepEqual(headers['set-cookie'], ['a=1', 'b=2']);
    assert.equal(headers['x-latin'], 'caf\xe9');
    assert.equal(headers['x-private'], onPlane({ builtin: undefined, haproxy: '1' }));
    assert.equal(headers['proxy-authenticate'], undefined);
  });
}

function responses() {
  test('HEAD, 204 and 304 have no body and leave the connection in order', async () => {
    const instance = await startInstance((request, response) => {
      if (request.url === '/304') response.writeHead(304, { etag: '"x"' });
      else if (request.url === '/204') response.writeHead(204);
      else response.writeHead(200, { 'content-length': '5' });
      response.end(request.url === '/' && request.method === 'GET' ? 'hello' : undefined);
    });
    const router = await serveInstance(instance);
    const wire = new Wire(router.port());
    for (const path of ['/204', '/304']) wire.write(getRequest(path));
    wire.write(getRequest().replace('GET', 'HEAD'));
    wire.write(getRequest('/', 'Connection: close\r\n'));
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
    const router = await serveInstance(instance);
    const { body, trailers, headers } = await ask(router.port());
    assert.equal(body, 'body');
    assert.equal(headers.trailer, 'X-Checksum');
    assert.deepEqual({ ...trailers }, { 'x-checksum': 'abc', 'x-count': '2' });
  });

  test('informational responses are passed on before the final one', async () => {
    const instance = await startInstance((_, response) => {
      response.writeEarlyHints({ link: '</style.css>; rel=preload' }, () => response.end('page'));
    });
    const router = await serveInstance(instance);
    const wire = new Wire(router.port());
    wire.write(getRequest('/', 'Connection: close\r\n'));
    const text = await wire.untilClosed();
    assert.match(text, /^HTTP\/1\.1 103 [\s\S]*rel=preload[\s\S]*HTTP\/1\.1 200 /);
  });

  test('a client of HTTP/1.0 gets the body until the end of the connection', async () => {
    const instance = await startInstance((_, response) => {
      response.write('no length ');
      response.end('given');
    });
    const router = await serveInstance(instance);
    const wire = new Wire(router.port());
    wire.write(getRequest().replace('HTTP/1.1', 'HTTP/1.0'));
    assert.match(await wire.untilClosed(), /\r\n\r\nno length given$/);
  });

  test('Expect: 100-continue is answered once an instance takes the body', async () => {
    const instance = await startInstance((request, response) => request.pipe(response));
    const router = await serveInstance(instance);
    const wire = new Wire(router.port());
    wire.write(`POST / HTTP/1.1\r\nHost: ${host}\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n`);
    assert.match(await wire.head(), /^HTTP\/1\.1 100 /);
    wire.write('body');
    await wire.until('the answer', () => wire.text.includes('body'));
    assert.match(wire.text, /HTTP\/1\.1 200 /);
    assert.equal(instance.seen[0]!.headers.expect, onPlane({ builtin: undefined, haproxy: '100-continue' }));
    wire.socket.destroy();
  });

  test('Expect: 100-continue without a body: where the answer closes the connection, what is behind it is not read', async () => {
    const instance = await named('ok');
    const router = await serveInstance(instance);
    const wire = new Wire(router.port());
    wire.write(getRequest('/first', 'Expect: 100-continue\r\n') + getRequest('/second', 'Connection: close\r\n'));
    const text = await wire.untilClosed();
    const reached = instance.seen.map(({ url }) => url);
    const closes = /connection: close/i.test(text.slice(0, text.indexOf('\r\n\r\n')));
    assert.deepEqual(reached, closes ? ['/first'] : ['/first', '/second']);
  });

  test('connections to instances are kept', async () => {
    const instance = await named('ok');
    const router = await serveInstance(instance);
    for (let i = 0; i < 50; i++) await ask(router.port(), i % 2 === 0 ? {} : { method: 'POST', body: 'x' });
    assert.equal(instance.connections(), 1);
  });

  test('an error response to a request with a body: the connection stays usable, or is closed unread', async () => {
    const router = await serveInstance(await named('ok'));
    const wire = new Wire(router.port());
    wire.write('POST / HTTP/1.1\r\nHost: unknown.example\r\nContent-Length: 4\r\n\r\n');
    await wire.until('the answer', () => statusOf(wire.text) === 404);
    wire.write(`body${getRequest('/', 'Connection: close\r\n')}`);
    const text = await wire.untilClosed();
    if (plane === 'builtin') assert.match(text, /HTTP\/1\.1 200 [\s\S]*ok$/);
    else assert.deepEqual([text.match(/HTTP\/1\.1/g)!.length, /connection: close/.test(text)], [1, true]);
  });

  test('a response before the end of the upload arrives', async () => {
    const instance = await startInstance((_, response) => {
      response.writeHead(413);
      response.end('too much');
    });
    const router = await serveInstance(instance);
    const wire = new Wire(router.port());
    wire.write(`POST / HTTP/1.1\r\nHost: ${host}\r\nContent-Length: 2000000\r\n\r\n${'x'.repeat(1000)}`);
    await wire.until('the answer', () => wire.text.includes('too much'));
    assert.equal(statusOf(wire.text), 413);
    wire.socket.destroy();
  });
}

describe('headers', headers);
describe('responses', responses);
