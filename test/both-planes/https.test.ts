// Requests over HTTPS and HTTP/1.1, challenges and redirects on the plain port, and how TLS connections drain.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { Agent } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';
import type { TLSSocket } from 'node:tls';
import { promisify } from 'node:util';
import { onPath } from '../../scripts/packages.ts';
import { refusesConnections, Wire } from '../helpers/raw-http.ts';
import { ask, host, named, route, share, startRouter } from '../helpers/router.ts';
import { ca } from '../helpers/router-certificates.ts';
import { onPlane, plane } from '../helpers/router-plane.ts';
import { askTls, handshake, serveTls, startTlsRouter } from '../helpers/router-tls.ts';
import { until } from '../helpers/wait.ts';

const megabyte = 1024 * 1024;

function requests() {
  test('HTTP/1.1: the instance gets the protocol, the port and the address of the visitor', async () => {
    const instance = await named('ok');
    const router = await startTlsRouter();
    await router.serve(share(1, 100, instance));
    await askTls(router.tls, { headers: { 'x-forwarded-proto': 'http', forwarded: 'proto=http' } });
    const { headers } = instance.seen[0]!;
    assert.equal(headers['x-forwarded-proto'], 'https');
    assert.equal(headers['x-forwarded-port'], String(router.tls));
    assert.equal(headers.forwarded, `for=127.0.0.1;proto=https;host="${host}"`);
    await askTls(router.tls, {});
    assert.deepEqual(instance.seen[1]!.headers, headers, 'the same for a client that sends none of them');
    assert.deepEqual(await router.counted(1), { requests: 2, errors: 0, clientErrors: 0 });
  });

  test('10 MB up and down', async () => {
    const router = await serveTls((request, response) => request.pipe(response));
    const body = Buffer.alloc(10 * megabyte, 'b');
    assert.ok((await askTls(router.tls, { method: 'POST', body })).body.equals(body));
  });

  test('connections are kept', async () => {
    const router = await serveTls((_, response) => response.end('ok'));
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    const ports = new Set<number>();
    for (let i = 0; i < 20; i++) {
      const { status, clientPort } = await askTls(router.tls, {}, { agent });
      assert.equal(status, 200);
      ports.add(clientPort);
    }
    assert.equal(ports.size, 1);
    agent.destroy();
  });

  test('421 for another host than the handshake was for, and the connection goes on', async () => {
    const router = await serveTls((_, response) => response.end('ok'));
    await router.certificates.renew('other.example');
    await router.apply(route([share(1, 100)], [host, 'other.example']));
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    const statuses = [];
    const ports = new Set<number>();
    for (const name of ['other.example', 'nobody.example', `${host}:8443`]) {
      const { status, clientPort } = await askTls(router.tls, { headers: { host: name } }, { agent });
      statuses.push(status);
      ports.add(clientPort);
    }
    assert.deepEqual(statuses, [421, 421, 503]);
    assert.equal(ports.size, 1);
    agent.destroy();
  });

  test('an upgraded connection over TLS is a tunnel', async () => {
    const instance = await named('no upgrade');
    instance.server.on('upgrade', (request, socket) => {
      instance.seen.push(request);
      socket.write('HTTP/1.1 101 Switching Protocols\r\nUpgrade: echo\r\nConnection: Upgrade\r\n\r\nwelcome ');
      socket.pipe(socket);
    });
    const router = await startTlsRouter();
    await router.serve(share(1, 100, instance));
    const socket = (await handshake(router.tls, { servername: host, ALPNProtocols: ['http/1.1'] })) as TLSSocket;
    let text = '';
    socket.setEncoding('latin1').on('data', (chunk) => {
      text += chunk;
    });
    const big = 'x'.repeat(megabyte);
    socket.write(`GET / HTTP/1.1\r\nHost: ${host}\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\nearly ${big} late`);
    await until('the echo', () => text.endsWith(`welcome early ${big} late`));
    assert.match(text, /^HTTP\/1\.1 101 /);
    assert.equal(instance.seen[0]!.headers['x-forwarded-proto'], 'https');
    socket.end();
    await once(socket, 'close');
  });

  test('curl verifies it, with HTTP/2 and HTTP/1.1', { skip: !onPath('curl') && 'curl is missing' }, async () => {
    const router = await serveTls((request, response) => request.pipe(response));
    const folder = mkdtempSync(join(tmpdir(), 'sluice-tls-'));
    after(() => rmSync(folder, { recursive: true }));
    const root = join(folder, 'ca.pem');
    writeFileSync(root, ca);
    for (const version of ['2', '1.1']) {
      const args = ['-s', '--cacert', root, '--resolve', `${host}:${router.tls}:127.0.0.1`, `--http${version}`];
      args.push('--data', 'hello', '-w', ' %{http_version} %{ssl_verify_result}', `https://${host}:${router.tls}/`);
      assert.equal((await promisify(execFile)('curl', args)).stdout, `hello ${version} 0`);
    }
  });
}

function withoutTls() {
  test('a challenge is answered for any host, and only where there is one', async () => {
    const router = await serveTls((request, response) => response.end(`app ${request.url}`), {}, { port: 443 });
    await router.apply(route([share(1, 100, await named('app'))], [host], true));
    router.certificates.challenges.set('new.example tok_en-1', 'tok_en-1.thumb');
    router.certificates.challenges.set(`${host} t`, 't.thumb');
    const path = '/.well-known/acme-challenge/tok_en-1';
    const { status, headers, body } = await ask(router.port(), { host: 'New.Example:80', path });
    assert.deepEqual([status, body], [200, 'tok_en-1.thumb']);
    assert.equal(headers['content-type'], 'application/octet-stream');
    const head = await ask(router.port(), { method: 'HEAD', host: 'new.example', path });
    assert.deepEqual([head.status, head.body, head.headers['content-length']], [200, '', '14']);
    assert.equal((await ask(router.port(), { path: '/.well-known/acme-challenge/t' })).body, 't.thumb');
    assert.equal((await ask(router.port(), { method: 'POST', host: 'new.example', path })).status, 404);
    assert.equal((await ask(router.port(), { host: 'new.example', path: `${path}?x` })).status, 404);
    assert.equal((await ask(router.port(), { host: 'else.example', path })).status, 404);
    const unknown = await ask(router.port(), { path });
    assert.equal(
      unknown.status,
      onPlane({ builtin: 308, haproxy: 404 }),
      'a challenge that we do not know is a request',
    );
  });

  test('where challenges cannot be looked up the request is routed, or HAProxy answers 404', async () => {
    const router = await serveTls((_, response) => response.end('app'));
    router.certificates.answerChallenge = () => Promise.reject(new Error('the database is away'));
    const { body, status } = await ask(router.port(), { path: '/.well-known/acme-challenge/x' });
    assert.ok(onPlane({ builtin: body === 'app', haproxy: status === 404 }));
  });

  test('308 to https for hosts with a certificate, for no others, and never with TLS', async () => {
    const instance = await named('app');
    for (const [port, shown] of [
      [443, ''],
      [8443, ':8443'],
      [null, null],
    ] as const) {
      const router = await startTlsRouter({}, { port });
      const both = route([share(1, 100, instance)], [host, 'plain.example']);
      both.hosts[0]!.secure = true;
      await router.apply(both);
      const { status, headers } = await ask(router.port(), {
        host: `${host}:8000`,
        method: 'POST',
        path: '/a//b?c=%20',
      });
      assert.equal(status, 308);
      assert.equal(headers.location, `https://${host}${shown ?? `:${router.tls}`}/a//b?c=%20`);
      assert.equal(headers['cache-control'], 'no-store');
      assert.equal((await ask(router.port(), { host: 'plain.example' })).body, 'app');
      assert.equal((await askTls(router.tls)).body.toString(), 'app');
    }
  });

  test('no redirect where none is wanted', async () => {
    const router = await startTlsRouter();
    await router.apply(route([share(1, 100, await named('app'))], [host], true));
    assert.equal((await ask(router.port())).body, 'app');
  });

  test('without certificates there is no listener', async () => {
    assert.equal((await startRouter()).tlsPort(), null);
  });
}

function draining() {
  test('requests under way end, idle connections close, new ones are refused', async () => {
    let finish: (() => void) | null = null;
    const router = await serveTls((_, response) => {
      finish = () => response.end('late');
    });
    const port = router.tls;
    const idle = (await handshake(port, { servername: host })) as TLSSocket;
    idle.resume();
    const under = askTls(port);
    await until('the instance has it', () => finish !== null);
    const left = once(idle, 'close');
    const stopping = router.stop(10_000);
    if (plane === 'builtin') await left;
    await until('new connections are refused', () => refusesConnections(port));
    finish!();
    const { body, headers } = await under;
    assert.equal(body.toString(), 'late');
    assert.equal(headers.connection, 'close');
    if (plane === 'haproxy') idle.end(); // it would take one more request
    await stopping;
  });

  test('what does not end in time is cut off, a handshake too', async () => {
    const router = await serveTls(() => {});
    const begun = new Wire(router.tls);
    await once(begun.socket, 'connect');
    const under = askTls(router.tls).catch(({ code }) => code);
    await until('it is asked', () => router.instance.seen.length === 1);
    await router.stop(100);
    assert.equal(await under, 'ECONNRESET');
    await begun.untilClosed();
  });
}

describe('requests over TLS', requests);
describe('without TLS', withoutTls);
describe('draining', draining);
