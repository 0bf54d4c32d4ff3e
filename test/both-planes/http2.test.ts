// HTTP/2 for visitors: everything that HTTP/1.1 carries, on streams of one connection, and how sessions drain.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { constants } from 'node:http2';
import { describe, test } from 'node:test';
import { type Frame, frameTypes, RawHttp2, requestLines } from '../helpers/raw-http2.ts';
import { host, named, share } from '../helpers/router.ts';
import { onPlane, plane } from '../helpers/router-plane.ts';
import { openSession, serveTls, startTlsRouter } from '../helpers/router-tls.ts';
import { until } from '../helpers/wait.ts';

function messages() {
  test('a request arrives as HTTP/1.1, with Host, one Cookie line and forwarded headers', async () => {
    const { tls, instance, counted } = await serveTls((_, response) => response.end('ok'));
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
    await ask({ path: '/a?b=%20c', headers: { cookie: ['a=1', 'b=2'], 'x-kept': ['one', 'two'] } });
    assert.deepEqual(instance.seen[1]!.headers, seen, 'the same for a client that sends none of what is removed');
    assert.deepEqual(await counted(1), { requests: 2, errors: 0, clientErrors: 0 });
  });

  test('responses: headers, several cookies, trailers, 103, HEAD, 204, 304, 404, error responses', async () => {
    const { tls, serve } = await serveTls((request, response) => {
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
    await serve();
    const own = await ask({ method: 'POST', body: 'x'.repeat(1000) });
    assert.equal(own.status, 503);
    assert.match(own.body.toString(), /no instance .* \(req_/);
    assert.equal((await ask({ method: 'HEAD' })).status, 503);
  });

  test('421 for another host than the handshake was for; the session goes on', async () => {
    const { tls, instance } = await serveTls((_, response) => response.end('ok'));
    const { ask } = await openSession(tls);
    assert.equal((await ask({ headers: { ':authority': 'other.example' } })).status, 421);
    assert.equal((await ask({ headers: { ':authority': host.toUpperCase() } })).status, 200);
    assert.equal(instance.seen.length, 1);
  });

  test('100-continue is answered once an instance takes the body', async () => {
    const { tls, instance } = await serveTls((request, response) => request.pipe(response));
    const { open } = await openSession(tls);
    const stream = open({ method: 'POST', headers: { expect: '100-continue' }, body: '' });
    await once(stream, 'continue');
    stream.end('body');
    assert.equal(String(await stream.toArray()), 'body');
    assert.equal(instance.seen[0]!.headers.expect, onPlane({ builtin: undefined, haproxy: '100-continue' }));
  });

  test('a visitor keeps to its side of a canary', async () => {
    const router = await startTlsRouter();
    await router.serve(share(1, 50, await named('stable')), share(2, 50, await named('canary')));
    const { ask } = await openSession(router.tls);
    const first = await ask();
    const cookie = first.headers['set-cookie']![0]!.split(';')[0]!;
    for (let i = 0; i < 20; i++) {
      assert.equal((await ask({ headers: { cookie: ['a=b', cookie] } })).body.toString(), first.body.toString());
    }
  });
}

function draining() {
  test('GOAWAY: a stream under way finishes, a later one is not served, then the session ends', async () => {
    let finish = () => {};
    const { tls, instance, stop } = await serveTls((_, response) => {
      finish = () => response.end('late');
    });
    const raw = new RawHttp2(tls);
    raw.headers(1, requestLines());
    await until('it is asked', () => instance.seen.length === 1);
    const stopping = stop(10_000);
    const { payload } = await raw.next(frameTypes.goaway);
    // HAProxy first announces that it will go away, and takes what is on its way (RFC 9113, 6.8).
    const last = onPlane({ builtin: 1, haproxy: 2 ** 31 - 1 });
    assert.deepEqual([payload.readUInt32BE(0), payload.readUInt32BE(4)], [last, constants.NGHTTP2_NO_ERROR]);
    if (plane === 'builtin') raw.headers(3, requestLines());
    finish();
    const isLast = ({ type, stream, flags }: Frame) => type === frameTypes.data && stream === 1 && (flags & 1) === 1;
    await until('it has ended', () => raw.frames.some(isLast));
    if (plane === 'haproxy') raw.socket.end(); // it waits for the client to go
    await stopping;
    await until('the connection is closed', () => raw.closed);
    assert.equal(instance.seen.length, 1);
  });

  test('a Node client gets the response to every request it sent before', async () => {
    const held: ServerResponse[] = [];
    const { tls, instance, stop } = await serveTls((_, response) => void held.push(response));
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
    const { tls, instance, stop } = await serveTls(() => {});
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
describe('draining', draining);
