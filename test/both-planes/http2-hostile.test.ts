// HTTP/2 from clients that break the rules: malformed requests are refused, floods cost at most their own session.
import assert from 'node:assert/strict';
import { constants } from 'node:http2';
import { describe, test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { block, frame, frameTypes, RawHttp2, requestLines } from '../helpers/raw-http2.ts';
import { host } from '../helpers/router.ts';
import { onPlane, plane } from '../helpers/router-plane.ts';
import { askTls, openSession, serveTls } from '../helpers/router-tls.ts';
import { until } from '../helpers/wait.ts';

const malformed: Record<string, [string, string][]> = {
  'a connection header': [...requestLines(), ['connection', 'close']],
  'a Transfer-Encoding': [...requestLines('POST'), ['transfer-encoding', 'chunked']],
  'an upgrade': [...requestLines(), ['upgrade', 'websocket']],
  'te other than trailers': [...requestLines(), ['te', 'gzip']],
  'a name in capitals': [...requestLines(), ['X-Upper', '1']],
  'a space in the path': requestLines('GET', '/ HTTP/1.1'),
  'a line feed in the path': requestLines('GET', '/\r\nx: y'),
  'a path that is none': requestLines('GET', 'x'),
  'an empty path': requestLines('GET', ''),
  'an address as the path': requestLines('GET', 'https://other.example/'),
  'a method that is none': requestLines('GET / HTTP/1.1\r\n', '/'),
  'a method that there is not': requestLines('BREW'),
  TRACE: requestLines('TRACE'),
  'another scheme': requestLines().map(([name, value]) => [name, name === ':scheme' ? 'ftp' : value]),
  'two paths': [...requestLines(), [':path', '/other']],
  'a pseudo header that there is not': [...requestLines(), [':other', '1']],
  CONNECT: [
    [':method', 'CONNECT'],
    [':authority', host],
  ],
  'no host': requestLines().filter(([name]) => name !== ':authority'),
  'a host with a user': requestLines().map(([name, value]) => [name, name === ':authority' ? `a@${host}` : value]),
  'two lengths': [...requestLines('POST'), ['content-length', '0'], ['content-length', '5']],
  'a length that is none': [...requestLines('POST'), ['content-length', '+0']],
};

/** What the built-in proxy refuses, and HAProxy passes on without the contradiction. */
const contradicting: Record<string, [string, string][]> = {
  'extended CONNECT': [...requestLines('CONNECT'), [':protocol', 'websocket']],
  'another host': [...requestLines(), ['host', 'other.example']],
  'a length and no body': [...requestLines('POST'), ['content-length', '5']],
};

/** Header lines that nghttp2 removes from the head. */
const leftOut: Record<string, [string, string]> = {
  'a name with a space': ['x a', '1'],
  'a name with a colon': ['x:a', '1'],
  'a line feed in a name': ['x\r\nhost', 'evil.example'],
  'a line feed in a value': ['x-a', '1\r\nx-b: 2'],
  'a NUL in a value': ['x-a', '1\0'],
  'a control character in a value': ['x-a', '1\x01'],
};

function strictness() {
  for (const [name, line] of Object.entries(leftOut)) {
    test(`no instance sees: ${name}`, async () => {
      const { tls, instance } = await serveTls((_, response) => response.end('ok'));
      const raw = new RawHttp2(tls);
      raw.headers(1, [...requestLines(), line]);
      await raw.outcome(1);
      for (const { rawHeaders } of instance.seen) {
        assert.doesNotMatch(rawHeaders.join('|'), /x[- ]?[ab:]|evil/i);
      }
    });
  }

  for (const [name, lines] of Object.entries(malformed)) {
    test(`refused: ${name}`, async () => {
      const { tls, instance } = await serveTls((_, response) => response.end('ok'));
      const raw = new RawHttp2(tls);
      raw.headers(1, lines);
      assert.notEqual(await raw.outcome(1), 'status 200');
      assert.equal(instance.seen.length, 0);
    });
  }

  for (const [name, lines] of Object.entries(contradicting)) {
    test(`${plane === 'builtin' ? 'refused' : 'repaired'}: ${name}`, async () => {
      const { tls, instance } = await serveTls((_, response) => response.end('ok'));
      instance.server.on('upgrade', (request, socket) => {
        instance.seen.push(request);
        socket.end('HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n');
      });
      const raw = new RawHttp2(tls);
      // A tunnel stays open: HAProxy gives up a client that has closed its side before the instance is connected.
      raw.headers(1, lines, name === 'extended CONNECT' ? 4 : undefined);
      const outcome = await raw.outcome(1);
      if (plane === 'builtin') {
        assert.notEqual(outcome, 'status 200');
        assert.equal(instance.seen.length, 0);
        return;
      }
      assert.equal(instance.seen.length, 1, outcome);
      const { headers, method } = instance.seen[0]!;
      assert.equal(headers.host, host);
      assert.equal(headers['content-length'], undefined);
      if (name === 'extended CONNECT') assert.deepEqual([method, headers.upgrade], ['GET', 'websocket']);
    });
  }

  test('more or less body than its length is never a whole request', async () => {
    const ended: string[] = [];
    const { tls } = await serveTls((request, response) => {
      request.resume().on('end', () => ended.push('end'));
      request.on('end', () => response.end('ok'));
    });
    for (const text of ['more than five', 'less']) {
      const raw = new RawHttp2(tls);
      raw.headers(1, [...requestLines('POST'), ['content-length', '5']], 4);
      raw.write(frame(frameTypes.data, 1, 1, Buffer.from(text)));
      assert.match(await raw.outcome(1), /reset|goaway/);
    }
    assert.deepEqual(ended, []);
  });

  test('431 (HAProxy: no answer) for a head that is too large, in bytes or lines; a split cookie counts as one line', async () => {
    const headerBytes = onPlane({ builtin: 4096, haproxy: 32_768 }); // HAProxy needs room for a frame
    const { tls } = await serveTls((_, response) => response.end('ok'), { headerBytes, headerCount: 20 });
    const { ask } = await openSession(tls);
    const lines = Object.fromEntries(
      Array.from({ length: onPlane({ builtin: 20, haproxy: 40 }) }, (_, i) => [`x-${i}`, 'y']),
    );
    if (plane === 'haproxy') {
      for (const tooMuch of [{ 'x-large': 'x'.repeat(2 * headerBytes) }, lines]) {
        const session = await openSession(tls);
        const answered = session.ask({ headers: tooMuch });
        assert.notEqual(await answered.then(({ status }) => status, String), 200);
      }
      assert.equal((await ask()).status, 200);
      return;
    }
    assert.equal((await ask({ headers: { 'x-large': 'x'.repeat(4096) } })).status, 431);
    assert.equal((await ask({ headers: lines })).status, 431);
    assert.equal((await ask({ headers: { cookie: Array.from({ length: 40 }, (_, i) => `c${i}=1`) } })).status, 200);
    assert.equal((await ask()).status, 200);
  });
}

/** A session without a request stays open, however long the flood takes. */
const keptSession = { requestHeadMs: 600_000, keepAliveMs: 600_000 };

function floods() {
  test('rapid reset: the session is closed, few requests reach the instance, other sessions are served', async () => {
    const { tls, instance } = await serveTls((_, response) => response.end('ok'), {
      ...keptSession,
      streamResets: 50,
      streamResetsPerSecond: 1,
    });
    const { ask } = await openSession(tls);
    const raw = new RawHttp2(tls);
    await raw.next(frameTypes.settings);
    const cancel = Buffer.from([0, 0, 0, 8]);
    for (let id = 1; id < 20_000 && !raw.closed; id += 2) {
      raw.headers(id, requestLines());
      raw.write(frame(frameTypes.reset, 0, id, cancel));
      if (id % 200 === 1) await turn();
    }
    // HAProxy counts a stream until it is gone, so it works on no more of them than the limit at a time.
    if (plane === 'builtin') await until('it is closed', () => raw.closed);
    assert.ok(instance.seen.length < 1000, `${instance.seen.length} reached the instance`);
    assert.equal((await ask()).status, 200);
  });

  test('streams that are reset right after their head, with any error code, leave nothing behind', async () => {
    const { tls } = await serveTls((_, response) => response.end('ok'), { keepAliveMs: 200 });
    const raw = new RawHttp2(tls);
    await raw.next(frameTypes.settings);
    for (let i = 0; i < 100; i++) {
      const reset = frame(frameTypes.reset, 0, 2 * i + 1, Buffer.from([0, 0, 0, i % 14]));
      const head = frame(frameTypes.headers, i % 2 === 0 ? 5 : 4, 2 * i + 1, block(requestLines()));
      raw.write(Buffer.concat([head, reset]));
    }
    await until('the session is idle, and closed', () => raw.closed);
    assert.equal((await askTls(tls)).status, 200);
  });

  test('more streams at a time than allowed are refused', async () => {
    const { tls, instance } = await serveTls(() => {}, { streams: 5 });
    const raw = new RawHttp2(tls);
    for (let id = 1; id < 21; id += 2) raw.headers(id, requestLines());
    assert.equal(await raw.outcome(19), `reset ${constants.NGHTTP2_REFUSED_STREAM}`);
    await until('the rest is asked', () => instance.seen.length === 5);
  });

  test('floods of settings, pings and continuations take one session down at most', async () => {
    const { tls } = await serveTls((_, response) => response.end('ok'), keptSession);
    const { ask } = await openSession(tls);
    const ping = frame(frameTypes.ping, 0, 0, Buffer.alloc(8));
    const settings = frame(frameTypes.settings, 0, 0, Buffer.from([0, 3, 0, 0, 0, 1]));
    for (const bytes of [ping, settings]) {
      const raw = new RawHttp2(tls);
      await raw.next(frameTypes.settings);
      for (let i = 0; i < 200; i++) raw.write(Buffer.concat(Array.from({ length: 100 }, () => bytes)));
      raw.socket.destroy();
    }
    const raw = new RawHttp2(tls);
    raw.headers(1, requestLines(), 0);
    const more = frame(frameTypes.continuation, 0, 1, block([['x-more', 'y'.repeat(10_000)]]));
    for (let i = 0; i < 200; i++) raw.write(more);
    assert.match(await raw.outcome(1), /reset|goaway/);
    assert.equal((await ask()).status, 200);
  });

  test('bytes that are no HTTP/2 close the connection', async () => {
    const { tls } = await serveTls((_, response) => response.end('ok'));
    const raw = new RawHttp2(tls);
    raw.write(Buffer.from('GET / HTTP/1.1\r\n\r\n'.repeat(10)));
    await until('it is closed', () => raw.closed);
    assert.equal((await askTls(tls)).status, 200);
  });

  test('a session without streams is closed after a while, one with a stream under way is not', async () => {
    let finish = () => {};
    const { tls, instance } = await serveTls(
      (_, response) => {
        finish = () => response.end('late');
      },
      { keepAliveMs: 100, requestHeadMs: 500 },
    );
    const busy = await openSession(tls);
    const answer = busy.ask();
    await until('it is asked', () => instance.seen.length === 1);
    for (let i = 0; i < 2; i++) {
      const idle = await openSession(tls);
      await until('the idle one is closed', () => idle.session.destroyed);
    }
    finish();
    assert.equal((await answer).body.toString(), 'late');
    await until('the busy one is closed', () => busy.session.destroyed);
  });

  test('a client that leaves, by an end or a reset, makes room for another', async () => {
    const { tls } = await serveTls((_, response) => response.end('ok'), { connections: 1 });
    for (const leave of ['end', 'destroy'] as const) {
      const raw = new RawHttp2(tls);
      raw.headers(1, requestLines());
      assert.equal(await raw.outcome(1), 'status 200');
      raw.socket[leave]();
      await until('its connection is closed', () => raw.closed);
    }
    let answered = false;
    while (!answered)
      answered = await askTls(tls).then(
        ({ status }) => status === 200,
        () => false,
      );
  });

  test('a stream without progress is reset', async () => {
    const { tls, instance } = await serveTls(() => {}, { idleMs: 100, answerHeadMs: 100, retryMs: 0 });
    const raw = new RawHttp2(tls);
    raw.headers(1, requestLines('POST'), 4);
    raw.write(frame(frameTypes.data, 0, 1, Buffer.from('half')));
    await until('it is asked', () => instance.seen.length === 1);
    assert.match(await raw.outcome(1), /status other|reset/);
    await until('the instance is let go', () => instance.seen[0]!.socket.destroyed);
  });
}

describe('strictness', strictness);
describe('floods', floods);
