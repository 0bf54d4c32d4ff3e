// Bodies over HTTP/2: each stream goes at its own pace, and one that breaks off is never taken for a whole one.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { constants } from 'node:http2';
import { describe, test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { frame, frameTypes, RawHttp2, requestLines } from '../helpers/raw-http2.ts';
import { onPlane, plane } from '../helpers/router-plane.ts';
import { openSession, serveTls } from '../helpers/router-tls.ts';
import { until } from '../helpers/wait.ts';

const megabyte = 1024 * 1024;

/** The value after it has not changed for many turns of the event loop. */
async function settled(value: () => number): Promise<number> {
  for (let last = -1, quiet = 0; quiet < 2000; quiet = last === value() ? quiet + 1 : 0) {
    last = value();
    await turn();
  }
  return value();
}

function bodies() {
  test('many megabytes up and down on ten streams at once, with and without a length', async () => {
    const { tls, instance } = await serveTls(async (request, response) => {
      // HAProxy reads nothing of a session, acknowledgements included, while one upload waits for its instance.
      if (plane === 'haproxy') response.end(Buffer.concat(await request.toArray()));
      else request.pipe(response);
    });
    const { ask } = await openSession(tls);
    const body = Buffer.alloc(onPlane({ builtin: 10, haproxy: 3 }) * megabyte, 'b');
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
    const { tls } = await serveTls(async (request, response) => {
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

  test('an instance that does not read holds the visitor back, and with HAProxy the other streams too', async () => {
    let release = () => {};
    const { tls, instance } = await serveTls((request, response) => {
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
    const other = ask();
    if (plane === 'builtin') assert.equal((await other).body.toString(), 'ok');
    release();
    await sending;
    assert.equal(String(await stream.toArray()), 'done');
    assert.equal((await other).body.toString(), 'ok');
  });

  test('a visitor that resets a stream ends the request at the instance, whatever the error code', async () => {
    const ended: string[] = [];
    const { tls, instance, counted } = await serveTls((request, response) => {
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
        await until(
          `the connection to the instance closes (${method}, code ${code})`,
          () => instance.seen[0]!.socket.destroyed,
        );
        if (method === 'POST') assert.deepEqual(ended, [], 'a half is not passed on as a whole');
        raw.headers(3, requestLines());
        assert.equal(await raw.outcome(3), 'status 200', 'the session goes on');
      }
    }
    assert.equal((await counted(1)).errors, 0);
  });

  test('a response that is shorter than its length differs from one that ends, and is an error', async () => {
    const { tls, instance, counted } = await serveTls((_, response) => {
      response.writeHead(200, { 'content-length': '100' });
      response.write('half');
    });
    const { open } = await openSession(tls);
    const stream = open();
    stream.once('data', () => instance.seen[0]!.socket.destroy());
    stream.on('error', () => {});
    await until('it is over', () => stream.closed);
    assert.notEqual(stream.rstCode, constants.NGHTTP2_NO_ERROR);
    assert.deepEqual(await counted(1), { requests: 1, errors: 1, clientErrors: 0 });
  });

  test('one without a length that breaks off is an error, too; with HAProxy 2.6 the visitor cannot tell', async () => {
    const { tls, instance, counted } = await serveTls((_, response) => void response.write('half'));
    const { open } = await openSession(tls);
    const stream = open();
    stream.once('data', () => instance.seen[0]!.socket.destroy());
    stream.on('error', () => {});
    await until('it is over', () => stream.closed);
    assert.equal(stream.rstCode === constants.NGHTTP2_NO_ERROR, onPlane({ builtin: false, haproxy: true }));
    assert.deepEqual(await counted(1), { requests: 1, errors: 1, clientErrors: 0 });
  });

  test('a response before the end of the upload arrives', async () => {
    const { tls } = await serveTls((_, response) => {
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

describe('bodies', bodies);
