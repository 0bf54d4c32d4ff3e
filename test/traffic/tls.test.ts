// TLS in the built-in data plane: whose certificate is shown, what is refused, and that nothing of it disturbs the
// requests under way. HTTP/2 has a file of its own.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { Agent } from 'node:https';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';
import { createSecureContext, type TLSSocket } from 'node:tls';
import { promisify } from 'node:util';
import { Pool } from 'undici';
import { onPath } from '../../scripts/packages.ts';
import { Wire } from '../helpers/raw-http.ts';
import { ask, host, named, route, share, startInstance, startRouter } from '../helpers/router.ts';
import { ca } from '../helpers/router-certificates.ts';
import { askTls, handshake, openSession, startTlsRouter, type TestTlsRouter } from '../helpers/router-tls.ts';
import { until } from '../helpers/wait.ts';

const megabyte = 1024 * 1024;

async function serving(
  answer: Parameters<typeof startInstance>[0],
  ...options: Parameters<typeof startTlsRouter>
): Promise<TestTlsRouter> {
  const router = await startTlsRouter(...options);
  router.serve(share(1, 100, await startInstance(answer)));
  return router;
}

function handshakes() {
  test('the certificate is that of the name asked for, whatever its case', async () => {
    const router = await serving((_, response) => response.end('ok'));
    const other = await router.certificates.renew('other.example');
    assert.equal((await askTls(router.tls)).body.toString(), 'ok');
    const socket = (await handshake(router.tls, { servername: 'OTHER.example' })) as TLSSocket;
    assert.equal(socket.getPeerCertificate().serialNumber, other.serial);
    assert.deepEqual(router.certificates.asked, [host, 'other.example']);
  });

  test('TLS 1.3 and 1.2 with good suites; nothing older or weaker', async () => {
    const router = await serving((_, response) => response.end('ok'));
    for (const version of ['TLSv1.3', 'TLSv1.2'] as const) {
      const socket = (await handshake(router.tls, { servername: host, maxVersion: version })) as TLSSocket;
      assert.equal(socket.getProtocol(), version);
      assert.match(socket.getCipher().name, /^(TLS_|ECDHE-).*(GCM|CHACHA20)/);
    }
    const weak = [
      { minVersion: 'TLSv1', maxVersion: 'TLSv1.1', ciphers: 'DEFAULT@SECLEVEL=0' },
      { maxVersion: 'TLSv1.2', ciphers: 'AES128-GCM-SHA256' },
      { maxVersion: 'TLSv1.2', ciphers: 'ECDHE-ECDSA-AES128-SHA' },
    ];
    for (const options of weak) {
      const error = await handshake(router.tls, { servername: host, ...options });
      assert.ok(error instanceof Error, JSON.stringify(options));
      assert.match(String(error.code), /PROTOCOL_VERSION|HANDSHAKE_FAILURE/);
    }
  });

  test('a name that nobody has is refused by its alert, and so is none', async () => {
    const router = await serving((_, response) => response.end('ok'));
    for (const maxVersion of ['TLSv1.3', 'TLSv1.2']) {
      const error = await handshake(router.tls, { servername: 'unknown.example', maxVersion });
      assert.ok(error instanceof Error);
      assert.equal(error.code, 'ERR_SSL_TLSV1_UNRECOGNIZED_NAME');
      const nameless = await handshake(router.tls, { maxVersion, checkServerIdentity: () => undefined });
      assert.ok(nameless instanceof Error);
      assert.match(String(nameless.code), /HANDSHAKE_FAILURE/);
    }
    assert.equal((await askTls(router.tls)).body.toString(), 'ok');
  });

  test('certificates that cannot be read refuse one handshake and no other', async () => {
    const router = await serving((_, response) => response.end('ok'));
    const { contextFor } = router.certificates;
    router.certificates.contextFor = () => Promise.reject(new Error('the database is away'));
    assert.ok((await handshake(router.tls, { servername: host })) instanceof Error);
    router.certificates.contextFor = contextFor;
    assert.equal((await askTls(router.tls)).body.toString(), 'ok');
  });

  test('bytes that are no TLS, 500 connections that leave at once: the next visitor is served', async () => {
    const router = await serving((_, response) => response.end('ok'));
    const plain = new Wire(router.tls);
    plain.write(`GET / HTTP/1.1\r\nHost: ${host}\r\n\r\n`);
    await plain.untilClosed();
    for (let i = 0; i < 500; i++) {
      const socket = connect({ port: router.tls, host: '127.0.0.1' });
      socket.on('error', () => {});
      await once(socket, 'connect');
      socket.destroy();
    }
    assert.equal((await askTls(router.tls)).body.toString(), 'ok');
  });

  test('a visitor that leaves during the handshake is let go at once', async () => {
    const router = await serving((_, response) => response.end('ok'), { handshakeMs: 120_000 });
    const leaving = new Wire(router.tls);
    leaving.socket.end();
    await leaving.untilClosed();
  });

  test('a handshake that takes too long is cut off', async () => {
    const router = await serving((_, response) => response.end('ok'), { handshakeMs: 100 });
    const silent = new Wire(router.tls);
    const begun = new Wire(router.tls);
    begun.write('\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03');
    await Promise.all([silent.untilClosed(), begun.untilClosed()]);
  });

  test('sessions are resumed with a ticket', async () => {
    const router = await serving((_, response) => response.end('ok'));
    const first = (await handshake(router.tls, { servername: host })) as TLSSocket;
    first.resume();
    const [session] = await once(first, 'session');
    const again = (await handshake(router.tls, { servername: host, session })) as TLSSocket;
    assert.equal(again.isSessionReused(), true);
  });

  test('connections with and without TLS count together', async () => {
    const router = await serving((_, response) => response.end('ok'), { connections: 3 });
    const plain = [new Wire(router.port()), new Wire(router.port())];
    await Promise.all(plain.map(({ socket }) => once(socket, 'connect')));
    const secure = (await handshake(router.tls, { servername: host })) as TLSSocket;
    assert.ok(!(secure instanceof Error));
    assert.ok((await handshake(router.tls, { servername: host })) instanceof Error);
    assert.equal(await new Wire(router.port()).untilClosed(), '');
    secure.destroy();
    let answered = false;
    while (!answered)
      answered = await ask(router.port()).then(
        ({ status }) => status === 200,
        () => false,
      );
  });
}

function requests() {
  test('HTTP/1.1: the instance is told of https, the port and the visitor', async () => {
    const instance = await named('ok');
    const router = await startTlsRouter();
    router.serve(share(1, 100, instance));
    await askTls(router.tls, { headers: { 'x-forwarded-proto': 'http', forwarded: 'proto=http' } });
    const { headers } = instance.seen[0]!;
    assert.equal(headers['x-forwarded-proto'], 'https');
    assert.equal(headers['x-forwarded-port'], String(router.tls));
    assert.equal(headers.forwarded, `for=127.0.0.1;proto=https;host="${host}"`);
    assert.deepEqual(router.counted(1), { requests: 1, errors: 0 });
  });

  test('10 MB up and down', async () => {
    const router = await serving((request, response) => request.pipe(response));
    const body = Buffer.alloc(10 * megabyte, 'b');
    assert.ok((await askTls(router.tls, { method: 'POST', body })).body.equals(body));
  });

  test('connections are kept', async () => {
    const router = await serving((_, response) => response.end('ok'));
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    for (let i = 0; i < 20; i++) assert.equal((await askTls(router.tls, {}, { agent })).status, 200);
    assert.equal(router.certificates.asked.length, 1);
    agent.destroy();
  });

  test('421 for another host than the handshake was for, and the connection goes on', async () => {
    const router = await serving((_, response) => response.end('ok'));
    await router.certificates.renew('other.example');
    router.apply(new Map([host, 'other.example'].map((name) => [name, route([share(1, 100)])])));
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    const statuses = [];
    for (const name of ['other.example', 'nobody.example', `${host}:8443`]) {
      statuses.push((await askTls(router.tls, { headers: { host: name } }, { agent })).status);
    }
    assert.deepEqual(statuses, [421, 421, 503]);
    assert.equal(router.certificates.asked.length, 1);
    agent.destroy();
  });

  test('a WebSocket over TLS is a tunnel', async () => {
    const instance = await named('no upgrade');
    instance.server.on('upgrade', (request, socket) => {
      instance.seen.push(request);
      socket.write('HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\nwelcome ');
      socket.pipe(socket);
    });
    const router = await startTlsRouter();
    router.serve(share(1, 100, instance));
    const socket = (await handshake(router.tls, { servername: host, ALPNProtocols: ['http/1.1'] })) as TLSSocket;
    let text = '';
    socket.setEncoding('latin1').on('data', (chunk) => {
      text += chunk;
    });
    const big = 'x'.repeat(megabyte);
    socket.write(
      `GET / HTTP/1.1\r\nHost: ${host}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nearly ${big} late`,
    );
    await until('the echo', () => text.endsWith(`welcome early ${big} late`));
    assert.match(text, /^HTTP\/1\.1 101 /);
    assert.equal(instance.seen[0]!.headers['x-forwarded-proto'], 'https');
    socket.end();
    await once(socket, 'close');
  });

  test('curl verifies it, with HTTP/2 and HTTP/1.1', { skip: !onPath('curl') && 'curl is missing' }, async () => {
    const router = await serving((request, response) => request.pipe(response));
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

function renewal() {
  test('a certificate is swapped under load: no request fails, open connections live on', async () => {
    const router = await serving((_, response) => response.end('ok'), { requestHeadMs: 600_000 });
    const before = (await handshake(router.tls, { servername: host })) as TLSSocket;
    const oldest = before.getPeerCertificate().serialNumber;
    const pool = new Pool(`https://${host}:${router.tls}`, {
      connections: 8,
      allowH2: false,
      connect: { ca, servername: host, lookup: (_n, _o, done) => done(null, [{ address: '127.0.0.1', family: 4 }]) },
    });
    const { session, ask: ask2 } = await openSession(router.tls);
    let swaps = 0;
    let done = 0;
    let latest = '';
    const bad: unknown[] = [];
    const kept = async () => {
      while (swaps < 20) {
        const { statusCode, body } = await pool.request({ method: 'GET', path: '/' });
        await body.dump();
        if (statusCode !== 200 || (await ask2()).status !== 200) bad.push(statusCode);
        done++;
      }
    };
    const fresh = async () => {
      while (swaps < 20) {
        const { status } = await askTls(router.tls);
        if (status !== 200) bad.push(status);
        done++;
      }
    };
    const swapping = async () => {
      for (; swaps < 20; swaps++) {
        latest = (await router.certificates.renew(host)).serial;
        const seen = await askTls(router.tls);
        if (seen.serial !== latest) bad.push(seen.serial);
      }
    };
    await Promise.all([swapping(), fresh(), fresh(), kept(), kept(), kept()]);
    assert.deepEqual(bad, []);
    assert.ok(done > 100, `${done} requests`);
    assert.equal(session.destroyed, false);
    before.write(`GET / HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`);
    assert.match(Buffer.concat(await before.toArray()).toString(), /^HTTP\/1\.1 200 /);
    assert.notEqual(oldest, latest);
    await pool.close();
  });

  test('a name that is new is served at once, one that is gone no more', async () => {
    const router = await serving((_, response) => response.end('ok'));
    router.certificates.contexts.delete(host);
    assert.ok((await handshake(router.tls, { servername: host })) instanceof Error);
    await router.certificates.renew(host);
    assert.equal((await askTls(router.tls)).status, 200);
  });

  test('a context without a certificate refuses, and takes nothing down', async () => {
    const router = await serving((_, response) => response.end('ok'));
    router.certificates.contexts.set('empty.example', createSecureContext());
    assert.ok((await handshake(router.tls, { servername: 'empty.example' })) instanceof Error);
    assert.equal((await askTls(router.tls)).status, 200);
  });
}

function withoutTls() {
  test('a challenge is answered for any host, and only where there is one', async () => {
    const router = await serving((request, response) => response.end(`app ${request.url}`), {}, { port: 443 });
    router.apply(new Map([[host, { ...route([share(1, 100, await named('app'))]), secure: true }]]));
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
    assert.equal((await ask(router.port(), { path })).status, 308, 'a challenge that we do not know is a request');
  });

  test('where challenges cannot be looked up the request goes on', async () => {
    const router = await serving((_, response) => response.end('app'));
    router.certificates.answerChallenge = () => Promise.reject(new Error('the database is away'));
    assert.equal((await ask(router.port(), { path: '/.well-known/acme-challenge/x' })).body, 'app');
  });

  test('308 to https for hosts with a certificate, for no others, and never with TLS', async () => {
    const instance = await named('app');
    for (const [port, shown] of [
      [443, ''],
      [8443, ':8443'],
      [null, null],
    ] as const) {
      const router = await startTlsRouter({}, { port });
      const plain = route([share(1, 100, instance)]);
      router.apply(
        new Map([
          [host, { ...plain, secure: true }],
          ['plain.example', plain],
        ]),
      );
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
    router.apply(new Map([[host, { ...route([share(1, 100, await named('app'))]), secure: true }]]));
    assert.equal((await ask(router.port())).body, 'app');
  });

  test('without certificates there is no listener', async () => {
    assert.equal((await startRouter()).tlsPort(), null);
  });
}

function draining() {
  test('requests under way end, idle connections close, new handshakes are refused', async () => {
    let finish: (() => void) | null = null;
    const router = await serving((_, response) => {
      finish = () => response.end('late');
    });
    const port = router.tls;
    const idle = (await handshake(port, { servername: host })) as TLSSocket;
    idle.resume();
    const under = askTls(port);
    await until('the instance has it', () => finish !== null);
    const left = once(idle, 'close');
    const stopping = router.stop(10_000);
    await left;
    assert.ok((await handshake(port, { servername: host })) instanceof Error);
    finish!();
    const { body, headers } = await under;
    assert.equal(body.toString(), 'late');
    assert.equal(headers.connection, 'close');
    await stopping;
  });

  test('what does not end in time is cut off, a handshake too', async () => {
    const router = await serving(() => {});
    const begun = new Wire(router.tls);
    await once(begun.socket, 'connect');
    const under = askTls(router.tls).catch(({ code }) => code);
    await until('it is asked', () => router.certificates.asked.length === 1);
    await router.stop(100);
    assert.equal(await under, 'ECONNRESET');
    await begun.untilClosed();
  });
}

describe('handshakes', handshakes);
describe('requests over TLS', requests);
describe('renewal', renewal);
describe('without TLS', withoutTls);
describe('draining', draining);
