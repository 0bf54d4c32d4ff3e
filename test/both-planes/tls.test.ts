// TLS handshakes: which certificate is served, what is refused, and how one is replaced.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import { describe, test } from 'node:test';
import { createSecureContext, type TLSSocket } from 'node:tls';
import { Pool } from 'undici';
import { Wire } from '../helpers/raw-http.ts';
import { ask, host } from '../helpers/router.ts';
import { ca } from '../helpers/router-certificates.ts';
import { onPlane, plane } from '../helpers/router-plane.ts';
import { askTls, handshake, openSession, serveTls } from '../helpers/router-tls.ts';

function handshakes() {
  test('the certificate is that of the requested host name, whatever its case', async () => {
    const router = await serveTls((_, response) => response.end('ok'));
    const other = await router.certificates.renew('other.example');
    assert.equal((await askTls(router.tls)).body.toString(), 'ok');
    const socket = (await handshake(router.tls, { servername: 'OTHER.example' })) as TLSSocket;
    assert.equal(socket.getPeerCertificate().serialNumber, other.serial);
  });

  test('TLS 1.3 and 1.2 with good suites; nothing older or weaker', async () => {
    const router = await serveTls((_, response) => response.end('ok'));
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

  test('an unknown host name is refused with an alert, and so is a handshake without one', async () => {
    const router = await serveTls((_, response) => response.end('ok'));
    for (const maxVersion of ['TLSv1.3', 'TLSv1.2']) {
      const error = await handshake(router.tls, { servername: 'unknown.example', maxVersion });
      assert.ok(error instanceof Error);
      assert.equal(error.code, 'ERR_SSL_TLSV1_UNRECOGNIZED_NAME');
      const nameless = await handshake(router.tls, { maxVersion, checkServerIdentity: () => undefined });
      assert.ok(nameless instanceof Error);
      assert.match(String(nameless.code), onPlane({ builtin: /HANDSHAKE_FAILURE/, haproxy: /UNRECOGNIZED_NAME/ }));
    }
    assert.equal((await askTls(router.tls)).body.toString(), 'ok');
  });

  test('certificates that cannot be read refuse one handshake and no other; HAProxy has them already', async () => {
    const router = await serveTls((_, response) => response.end('ok'));
    const { contextFor } = router.certificates;
    router.certificates.contextFor = () => Promise.reject(new Error('the database is away'));
    router.certificates.find = () => Promise.reject(new Error('the database is away'));
    const refused = (await handshake(router.tls, { servername: host })) instanceof Error;
    assert.equal(refused, onPlane({ builtin: true, haproxy: false }));
    router.certificates.contextFor = contextFor;
    assert.equal((await askTls(router.tls)).body.toString(), 'ok');
  });

  test('bytes that are no TLS, 500 connections that leave at once: the next visitor is served', async () => {
    const router = await serveTls((_, response) => response.end('ok'));
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
    const router = await serveTls((_, response) => response.end('ok'), { handshakeMs: 120_000 });
    const leaving = new Wire(router.tls);
    leaving.socket.end();
    await leaving.untilClosed();
  });

  test('a handshake that takes too long is cut off', async () => {
    const router = await serveTls((_, response) => response.end('ok'), {
      ...{ handshakeMs: 100, idleMs: 100 }, // for HAProxy a handshake is as idle as any connection
    });
    const silent = new Wire(router.tls);
    const begun = new Wire(router.tls);
    begun.write('\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03');
    await Promise.all([silent.untilClosed(), begun.untilClosed()]);
  });

  test('sessions are resumed with a ticket', async () => {
    const router = await serveTls((_, response) => response.end('ok'));
    const first = (await handshake(router.tls, { servername: host })) as TLSSocket;
    first.resume();
    const [session] = await once(first, 'session');
    const again = (await handshake(router.tls, { servername: host, session })) as TLSSocket;
    assert.equal(again.isSessionReused(), true);
  });

  test('connections with and without TLS count together; HAProxy lets those beyond the limit wait', async () => {
    const router = await serveTls((_, response) => response.end('ok'), { connections: 3 });
    const plain = [new Wire(router.port()), new Wire(router.port())];
    await Promise.all(plain.map(({ socket }) => once(socket, 'connect')));
    const secure = (await handshake(router.tls, { servername: host })) as TLSSocket;
    assert.ok(!(secure instanceof Error));
    if (plane === 'haproxy') {
      const waiting = ask(router.port());
      secure.destroy();
      for (const { socket } of plain) socket.destroy();
      assert.equal((await waiting).status, 200);
      return;
    }
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

function renewal() {
  test('a certificate is replaced under load: no request fails, open connections stay open', async () => {
    const router = await serveTls((_, response) => response.end('ok'), { requestHeadMs: 600_000 });
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

  test('a new host name is served at once, a removed one no longer', async () => {
    const router = await serveTls((_, response) => response.end('ok'));
    await router.certificates.remove(host);
    assert.ok((await handshake(router.tls, { servername: host })) instanceof Error);
    await router.certificates.renew(host);
    assert.equal((await askTls(router.tls)).status, 200);
  });

  test('a context without a certificate fails that handshake only', async () => {
    const router = await serveTls((_, response) => response.end('ok'));
    router.certificates.contexts.set('empty.example', createSecureContext());
    assert.ok((await handshake(router.tls, { servername: 'empty.example' })) instanceof Error);
    assert.equal((await askTls(router.tls)).status, 200);
  });
}

describe('handshakes', handshakes);
describe('renewal', renewal);
