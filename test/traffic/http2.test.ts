// HTTP/2 to visitors: everything that travels over HTTP/1.1, on streams of one connection; what is malformed, and floods.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { RequestListener, ServerResponse } from 'node:http';
import { constants } from 'node:http2';
import { describe, test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { block, type Frame, frame, frameTypes, RawHttp2, requestLines } from '../helpers/raw-http2.ts';
import { host, named, share, startInstance, type TestInstance } from '../helpers/router.ts';
import { askTls, openSession, startTlsRouter, type TestTlsRouter } from '../helpers/router-tls.ts';
import { until } from '../helpers/wait.ts';

const megabyte = 1024 * 1024;

interface Served extends TestTlsRouter {
  instance: TestInstance;
}

async function serving(answer: RequestListener, limits: Parameters<typeof startTlsRouter>[0] = {}): Promise<Served> {
  const router = await startTlsRouter(limits);
  const instance = await startInstance(answer);
  router.serve(share(1, 100, instance));
  return { ...router, instance };
}

/** Many turns of the loop pass, and it stays as it is. */
async function settled(value: () => number): Promise<number> {
  for (let last = -1, quiet = 0; quiet < 2000; quiet = last === value() ? quiet + 1 : 0) {
    last = value();
    await turn();
  }
  return value();
}

function messages() {
  test('a request arrives as one of HTTP/1.1, with host, one cookie line and who asked', async () => {
    const { tls, instance, counted } = await serving((_, response) => response.end('ok'));
    const { ask } = await openSession(tls);
    const headers = { cookie: ['a=1', 'b=2'], 'x-kept': ['one', 'two'], te: 'trailers', 'x-forwarded-for': '9.9.9.9' };
    const { status, body } = await ask({ path: '/a?b=%20c', headers });
    assert.deepEqual([status, body.toString()], [200, 'ok']);
    const { headers: seen, url, method, httpVersion } = instance.seen[0]!;
    assert.deepEqual([method, url, httpVersion], ['GET', '/a?b=%20c', '1.1']);
    assert.equal(seen.host, `${host}:${tls}`);
    assert.equal(seen.cookie, 'a=1; b=2');
    assert.equal(seen['x-kept'], 'one, two');
    assert.equal(seen.te, undefined);
    assert.equal(seen['x-forwarded-for'], '127.0.0.1');
    assert.equal(seen['x-forwarded-proto'], 'https');
    assert.equal(seen['x-forwarded-port'], String(tls));
    assert.equal(seen['transfer-encoding'], undefined);
    assert.deepEqual(counted(1), { requests: 1, errors: 0 });
  });

  test('answers: headers, several cookies, trailers, 103, HEAD, 204, 304, 404, own ones', async () => {
    const { tls, serve } = await serving((request, response) => {
      if (request.url === '/trailers') {
        response.writeHead(200, { trailer: 'x-sum' });
        response.write('body');
        response.addTrailers({ 'x-sum': 'abc' });
        response.end();
      } else if (request.url === '/hints') {
        response.writeEarlyHints({ link: '</a.css>; rel=preload' }, () => response.end('page'));
      } else if (request.url === '/headers') {
        response.writeHead(200, ['Set-Cookie', 'a=1', 'Set-Cookie', 'b=2', 'X-Latin', 'caf\xe9', 'Keep-Alive', 'x']);
        response.end(Buffer.from('ok'));
      } else {
        response.writeHead(Number(request.url!.slice(1)), request.url === '/200' ? { 'content-length': '5' } : {});
        response.end(request.url === '/200' ? 'hello' : undefined);
      }
    });
    const { ask } = await openSession(tls);
    const trailed = await ask({ path: '/trailers' });
    assert.deepEqual([trailed.body.toString(), trailed.trailers['x-sum']], ['body', 'abc']);
    const hinted = await ask({ path: '/hints' });
    assert.equal(hinted.informed[0]![':status'], 103);
    assert.equal(hinted.informed[0]!.link, '</a.css>; rel=preload');
    assert.equal(hinted.body.toString(), 'page');
    const { headers } = await ask({ path: '/headers' });
    assert.deepEqual(headers['set-cookie'], ['a=1', 'b=2']);
    assert.equal(headers['x-latin'], 'caf\xe9');
    for (const name of ['connection', 'keep-alive', 'transfer-encoding']) assert.equal(headers[name], undefined);
    for (const status of [204, 205, 304, 404, 500]) assert.equal((await ask({ path: `/${status}` })).status, status);
    const head = await ask({ method: 'HEAD', path: '/200' });
    assert.deepEqual([head.status, head.headers['content-length'], head.body.length], [200, '5', 0]);
    assert.equal((await ask({ path: '/700' })).status, 502);
    serve();
    const own = await ask({ method: 'POST', body: 'x'.repeat(1000) });
    assert.equal(own.status, 503);
    assert.match(own.body.toString(), /no instance .* \(req_/);
    assert.equal((await ask({ method: 'HEAD' })).status, 503);
  });

  test('421 for another host than the handshake was for; the session goes on', async () => {
    const { tls, instance } = await serving((_, response) => response.end('ok'));
    const { ask } = await openSession(tls);
    assert.equal((await ask({ headers: { ':authority': 'other.example' } })).status, 421);
    assert.equal((await ask({ headers: { ':authority': host.toUpperCase() } })).status, 200);
    assert.equal(instance.seen.length, 1);
  });

  test('100-continue is answered once an instance takes the body', async () => {
    const { tls, instance } = await serving((request, response) => request.pipe(response));
    const { open } = await openSession(tls);
    const stream = open({ method: 'POST', headers: { expect: '100-continue' }, body: '' });
    await once(stream, 'continue');
    stream.end('body');
    assert.equal(String(await stream.toArray()), 'body');
    assert.equal(instance.seen[0]!.headers.expect, undefined);
  });

  test('a visitor keeps to its side of a canary', async () => {
    const router = await startTlsRouter();
    router.serve(share(1, 50, await named('stable')), share(2, 50, await named('canary')));
    const { ask } = await openSession(router.tls);
    const first = await ask();
    const cookie = first.headers['set-cookie']![0]!.split(';')[0]!;
    for (let i = 0; i < 20; i++) {
      assert.equal((await ask({ headers: { cookie: ['a=b', cookie] } })).body.toString(), first.body.toString());
    }
  });
}

function bodies() {
  test('10 MB up and down on ten streams at once, with and without a length', async () => {
    const { tls, instance } = await serving((request, response) => request.pipe(response));
    const { ask } = await openSession(tls);
    const body = Buffer.alloc(10 * megabyte, 'b');
    const answers = await Promise.all(
      Array.from({ length: 10 }, (_, i) =>
        ask({ method: 'POST', body, ...(i % 2 === 0 && { headers: { 'content-length': String(body.length) } }) }),
      ),
    );
    for (const answer of answers) assert.ok(answer.body.equals(body));
    const lengths = instance.seen.map(({ headers }) => headers['content-length'] ?? headers['transfer-encoding']);
    assert.deepEqual([...new Set(lengths)].sort(), [String(body.length), 'chunked']);
  });

  test('a visitor that does not read holds the instance back, and no other stream', async () => {
    let written = 0;
    const chunk = Buffer.alloc(megabyte, 'd');
    const { tls } = await serving(async (request, response) => {
      if (request.url === '/small') return void response.end('ok');
      for (let i = 0; i < 100; i++) {
        written++;
        if (!response.write(chunk)) await once(response, 'drain');
      }
      response.end();
    });
    const { open, ask } = await openSession(tls);
    const stream = open();
    await once(stream, 'response');
    const taken = await settled(() => written);
    assert.ok(taken < 60, `${taken} of 100 MB were taken`);
    assert.equal((await ask({ path: '/small' })).body.toString(), 'ok');
    let received = 0;
    for await (const part of stream) received += part.length;
    assert.equal(received, 100 * megabyte);
  });

  test('an instance that does not read holds the visitor back, and no other stream', async () => {
    let release = () => {};
    const { tls, instance } = await serving((request, response) => {
      if (request.method === 'GET') return void response.end('ok');
      release = () => request.resume().on('end', () => response.end('done'));
    });
    const { open, ask } = await openSession(tls);
    const stream = open({ method: 'POST', body: '' });
    let sent = 0;
    const sending = (async () => {
      for (; sent < 100; sent++) if (!stream.write(Buffer.alloc(megabyte))) await once(stream, 'drain');
      stream.end();
    })();
    await until('it is asked', () => instance.seen.length === 1);
    const taken = await settled(() => sent);
    assert.ok(taken < 60, `${taken} of 100 MB were taken`);
    assert.equal((await ask()).body.toString(), 'ok');
    release();
    await sending;
    assert.equal(String(await stream.toArray()), 'done');
  });

  test('a visitor that takes a stream back ends it at the instance, whatever its reason', async () => {
    const ended: string[] = [];
    const { tls, instance, counted } = await serving((request, response) => {
      request.on('end', () => ended.push('end')).resume();
      if (request.method === 'GET') response.write('first');
    });
    for (const method of ['GET', 'POST']) {
      for (const code of [constants.NGHTTP2_CANCEL, constants.NGHTTP2_NO_ERROR]) {
        instance.seen.length = 0;
        ended.length = 0;
        const raw = new RawHttp2(tls);
        raw.headers(1, requestLines(method), method === 'POST' ? 4 : 5);
        if (method === 'POST') raw.write(frame(frameTypes.data, 0, 1, Buffer.from('half')));
        await until('it is asked', () => instance.seen.length === 1);
        raw.write(frame(frameTypes.reset, 0, 1, Buffer.from([0, 0, 0, code])));
        await until('the connection to the instance closes', () => instance.seen[0]!.socket.destroyed);
        if (method === 'POST') assert.deepEqual(ended, [], 'a half is not passed on as a whole');
        raw.headers(3, requestLines());
        assert.equal(await raw.outcome(3), 'status 200', 'the session goes on');
      }
    }
    assert.equal(counted(1).errors, 0);
  });

  test('an answer that breaks off is told from one that ends', async () => {
    const { tls, instance, counted } = await serving((_, response) => void response.write('half'));
    const { open } = await openSession(tls);
    const stream = open();
    stream.once('data', () => instance.seen[0]!.socket.destroy());
    const [error] = await once(stream, 'error').then(
      (args) => args,
      (thrown) => [thrown],
    );
    assert.equal(error.code, 'ERR_HTTP2_STREAM_ERROR');
    assert.deepEqual(counted(1), { requests: 1, errors: 1 });
  });

  test('an answer before the end of the upload arrives', async () => {
    const { tls } = await serving((_, response) => {
      response.writeHead(413);
      response.end('too much');
    });
    const { open, ask } = await openSession(tls);
    const stream = open({ method: 'POST', body: '' });
    stream.on('error', () => {});
    stream.write(Buffer.alloc(1000));
    const [headers] = await once(stream, 'response');
    assert.equal(headers[':status'], 413);
    assert.equal(String(await stream.toArray()), 'too much');
    assert.equal((await ask()).status, 413);
  });
}

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
  'extended CONNECT': [...requestLines('CONNECT'), [':protocol', 'websocket']],
  CONNECT: [
    [':method', 'CONNECT'],
    [':authority', host],
  ],
  'another host': [...requestLines(), ['host', 'other.example']],
  'no host': requestLines().filter(([name]) => name !== ':authority'),
  'a host with a user': requestLines().map(([name, value]) => [name, name === ':authority' ? `a@${host}` : value]),
  'a length and no body': [...requestLines('POST'), ['content-length', '5']],
  'two lengths': [...requestLines('POST'), ['content-length', '0'], ['content-length', '5']],
  'a length that is none': [...requestLines('POST'), ['content-length', '+0']],
};

/** Lines that nghttp2 leaves out of the head before anybody sees them. */
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
      const { tls, instance } = await serving((_, response) => response.end('ok'));
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
      const { tls, instance } = await serving((_, response) => response.end('ok'));
      const raw = new RawHttp2(tls);
      raw.headers(1, lines);
      assert.notEqual(await raw.outcome(1), 'status 200');
      assert.equal(instance.seen.length, 0);
    });
  }

  test('more or less body than its length is never a whole request', async () => {
    const ended: string[] = [];
    const { tls } = await serving((request, response) => {
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

  test('431 for a head that is too large, in bytes or lines; crumbs of a cookie are one line', async () => {
    const { tls } = await serving((_, response) => response.end('ok'), { headerBytes: 4096, headerCount: 20 });
    const { ask } = await openSession(tls);
    const lines = Object.fromEntries(Array.from({ length: 20 }, (_, i) => [`x-${i}`, 'y']));
    assert.equal((await ask({ headers: { 'x-large': 'x'.repeat(4096) } })).status, 431);
    assert.equal((await ask({ headers: lines })).status, 431);
    assert.equal((await ask({ headers: { cookie: Array.from({ length: 40 }, (_, i) => `c${i}=1`) } })).status, 200);
    assert.equal((await ask()).status, 200);
  });
}

function floods() {
  test('rapid reset: the session is closed, the instance was spared, others are served', async () => {
    const { tls, instance } = await serving((_, response) => response.end('ok'), {
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
    await until('it is closed', () => raw.closed);
    assert.ok(instance.seen.length < 1000, `${instance.seen.length} reached the instance`);
    assert.equal((await ask()).status, 200);
  });

  test('streams taken back in the same breath, for any reason, leave nothing behind', async () => {
    const { tls } = await serving((_, response) => response.end('ok'), { keepAliveMs: 200 });
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
    const { tls, instance } = await serving(() => {}, { streams: 5 });
    const raw = new RawHttp2(tls);
    for (let id = 1; id < 21; id += 2) raw.headers(id, requestLines());
    assert.equal(await raw.outcome(19), `reset ${constants.NGHTTP2_REFUSED_STREAM}`);
    await until('the rest is asked', () => instance.seen.length === 5);
  });

  test('floods of settings, pings and continuations take one session down at most', async () => {
    const { tls } = await serving((_, response) => response.end('ok'));
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
    const { tls } = await serving((_, response) => response.end('ok'));
    const raw = new RawHttp2(tls);
    raw.write(Buffer.from('GET / HTTP/1.1\r\n\r\n'.repeat(10)));
    await until('it is closed', () => raw.closed);
    assert.equal((await askTls(tls)).status, 200);
  });

  test('a session without streams is closed after a while, one with a stream under way is not', async () => {
    let finish = () => {};
    const { tls, instance } = await serving(
      (_, response) => {
        finish = () => response.end('late');
      },
      { keepAliveMs: 100 },
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

  test('a client that leaves, in whatever way, leaves its place', async () => {
    const { tls } = await serving((_, response) => response.end('ok'), { connections: 1 });
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

  test('a stream that stands still is taken back', async () => {
    const { tls, instance } = await serving(() => {}, { idleMs: 100, answerHeadMs: 100, retryMs: 0 });
    const raw = new RawHttp2(tls);
    raw.headers(1, requestLines('POST'), 4);
    raw.write(frame(frameTypes.data, 0, 1, Buffer.from('half')));
    await until('it is asked', () => instance.seen.length === 1);
    assert.match(await raw.outcome(1), /status other|reset/);
    await until('the instance is let go', () => instance.seen[0]!.socket.destroyed);
  });
}

function draining() {
  test('GOAWAY: a stream under way finishes, a later one is told to be unserved, then the session ends', async () => {
    let finish = () => {};
    const { tls, instance, stop } = await serving((_, response) => {
      finish = () => response.end('late');
    });
    const raw = new RawHttp2(tls);
    raw.headers(1, requestLines());
    await until('it is asked', () => instance.seen.length === 1);
    const stopping = stop(10_000);
    const { payload } = await raw.next(frameTypes.goaway);
    assert.deepEqual([payload.readUInt32BE(0), payload.readUInt32BE(4)], [1, constants.NGHTTP2_NO_ERROR]);
    raw.headers(3, requestLines());
    finish();
    const isLast = ({ type, stream, flags }: Frame) => type === frameTypes.data && stream === 1 && (flags & 1) === 1;
    await until('it has ended', () => raw.frames.some(isLast));
    await stopping;
    await until('the connection is closed', () => raw.closed);
    assert.equal(instance.seen.length, 1);
  });

  test('a client of Node sees every answer to what it asked before', async () => {
    const held: ServerResponse[] = [];
    const { tls, instance, stop } = await serving((_, response) => void held.push(response));
    const { ask, session } = await openSession(tls);
    const under = Array.from({ length: 50 }, () => ask());
    await until('all are asked', () => instance.seen.length === 50);
    const stopping = stop(10_000);
    for (const response of held) response.end('ok');
    for (const { status } of await Promise.all(under)) assert.equal(status, 200);
    await stopping;
    await until('the session is over', () => session.destroyed);
  });

  test('an idle session ends at once, one that does not end in time is cut off', async () => {
    const { tls, instance, stop } = await serving(() => {});
    const idle = await openSession(tls);
    const busy = await openSession(tls);
    const under = busy.ask().then(
      () => 'answered',
      () => 'cut off',
    );
    await until('it is asked', () => instance.seen.length === 1);
    const closed = once(idle.session, 'close');
    const stopping = stop(500);
    await closed;
    await stopping;
    assert.equal(await under, 'cut off');
  });
}

describe('messages', messages);
describe('bodies', bodies);
describe('strictness', strictness);
describe('floods', floods);
describe('draining', draining);
