// Requests that two readers could understand in two ways. Each is refused, or reaches the instance as a single request
// without ambiguity; no instance ever sees the request hidden in it.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { after, describe, test } from 'node:test';
import { statusOf, Wire } from '../helpers/raw-http.ts';
import { ask, host, share, startRouter } from '../helpers/router.ts';

const hidden = `GET /hidden HTTP/1.1\r\nHost: ${host}\r\n\r\n`;

/** An instance that records every byte, and responds shortly to each head. */
async function startRecorder() {
  const recorder = { text: '', instance: 'recorder', host: '127.0.0.1', port: 0 };
  const server = createServer((socket) => {
    socket.on('error', () => {});
    socket.on('data', (chunk) => {
      recorder.text += chunk.toString('latin1');
      if (/\r\n\r\n/.test(chunk.toString('latin1'))) socket.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok');
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  after(() => server.close());
  recorder.port = (server.address() as AddressInfo).port;
  return recorder;
}

/** With a connection to the instance that waits for a request: one that slips through is sent at once. */
async function startWarm() {
  const router = await startRouter();
  const recorder = await startRecorder();
  await router.serve(share(1, 100, recorder));
  assert.equal((await ask(router.port())).body, 'ok');
  recorder.text = '';
  return { router, recorder };
}

const post = (headers: string, body: string) => `POST / HTTP/1.1\r\nHost: ${host}\r\n${headers}\r\n${body}`;
const get = (headers: string) => `GET / HTTP/1.1\r\nHost: ${host}\r\n${headers}\r\n`;

const refused: Record<string, string> = {
  'Content-Length and Transfer-Encoding': post(
    'Content-Length: 4\r\nTransfer-Encoding: chunked\r\n',
    `0\r\n\r\n${hidden}`,
  ),
  'Transfer-Encoding and Content-Length': post(
    `Transfer-Encoding: chunked\r\nContent-Length: ${hidden.length + 5}\r\n`,
    `0\r\n\r\n${hidden}`,
  ),
  'two different lengths': post(`Content-Length: 0\r\nContent-Length: ${hidden.length}\r\n`, hidden),
  'two lengths in one line': post(`Content-Length: 0, ${hidden.length}\r\n`, hidden),
  'a length with a sign': post(`Content-Length: +${hidden.length}\r\n`, hidden),
  'a negative length': post('Content-Length: -1\r\n', hidden),
  'a length in hexadecimal': post('Content-Length: 0x10\r\n', hidden),
  'a length that overflows': post('Content-Length: 18446744073709551616\r\n', hidden),
  'an empty length': post('Content-Length: \r\n', hidden),
  'a folded line': get(`X-A: b\r\n Transfer-Encoding: chunked\r\n`) + hidden,
  'a folded Transfer-Encoding': post('Transfer-Encoding:\r\n chunked\r\n', `0\r\n\r\n${hidden}`),
  'a space before the colon': post(`Content-Length : ${hidden.length}\r\n`, hidden),
  'a tab before the colon': post('Transfer-Encoding\t: chunked\r\n', `0\r\n\r\n${hidden}`),
  'a space before the name': get(` Content-Length: 5\r\n`) + hidden,
  'bare line feeds': `GET / HTTP/1.1\nHost: ${host}\n\n${hidden}`,
  'a bare line feed within the head': get('X-A: b\nContent-Length: 5\r\n') + hidden,
  'a bare carriage return': get('X-A: b\rContent-Length: 5\r\n') + hidden,
  'a NUL in a value': get('X-A: b\0c\r\n') + hidden,
  'a name with a character that is none of a token': get('X(A): b\r\n') + hidden,
  'a line without colon': get('Content-Length\r\n') + hidden,
  'another encoding than chunked': post('Transfer-Encoding: identity\r\n', hidden),
  'chunked twice': post('Transfer-Encoding: chunked, chunked\r\n', `0\r\n\r\n${hidden}`),
  'chunked in two lines': post('Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n', `0\r\n\r\n${hidden}`),
  'chunked that is not last': post('Transfer-Encoding: chunked, gzip\r\n', `0\r\n\r\n${hidden}`),
  'gzip and chunked': post('Transfer-Encoding: gzip, chunked\r\n', `0\r\n\r\n${hidden}`),
  'chunked with a vertical tab': post('Transfer-Encoding: \x0bchunked\r\n', `0\r\n\r\n${hidden}`),
  'quoted chunked': post('Transfer-Encoding: "chunked"\r\n', `0\r\n\r\n${hidden}`),
  'chunked of HTTP/1.0': post('Transfer-Encoding: chunked\r\n', `0\r\n\r\n${hidden}`).replace('HTTP/1.1', 'HTTP/1.0'),
  'two hosts': get('Host: other.example\r\n') + hidden,
  'no host': `GET / HTTP/1.1\r\n\r\n${hidden}`,
  'a host with a path': `GET / HTTP/1.1\r\nHost: ${host}/x\r\n\r\n${hidden}`,
  'a host with a user': `GET / HTTP/1.1\r\nHost: ${host}:80@evil.example\r\n\r\n${hidden}`,
  'an absolute target of another host': `GET http://other.example/ HTTP/1.1\r\nHost: ${host}\r\n\r\n${hidden}`,
  'an absolute target with a user': `GET http://a@${host}/ HTTP/1.1\r\nHost: ${host}\r\n\r\n${hidden}`,
  'a target of another scheme': `GET ftp://${host}/ HTTP/1.1\r\nHost: ${host}\r\n\r\n${hidden}`,
  'a target that is no path': `OPTIONS * HTTP/1.1\r\nHost: ${host}\r\n\r\n${hidden}`,
  'a version that there is not': `GET / HTTP/1.2\r\nHost: ${host}\r\n\r\n${hidden}`,
  'an expectation that there is not': get('Expect: 200-maybe\r\n') + hidden,
  TRACE: `TRACE / HTTP/1.1\r\nHost: ${host}\r\n\r\n${hidden}`,
  CONNECT: `CONNECT ${host}:80 HTTP/1.1\r\nHost: ${host}\r\n\r\n${hidden}`,
};

/** Bodies that turn out bad after the head was passed on: the request may have begun at the instance. */
const brokenBodies: Record<string, string> = {
  'a chunk size that is none': `zz\r\n${hidden}`,
  'a negative chunk size': `-1\r\n${hidden}`,
  'a chunk size with 0x': `0x5\r\nhello\r\n0\r\n\r\n${hidden}`,
  'a chunk size with a space before': ` 5\r\nhello\r\n0\r\n\r\n${hidden}`,
  'a chunk size that overflows': `10000000000000005\r\nhello\r\n0\r\n\r\n${hidden}`,
  'a chunk that is longer than it says': `3\r\nhello\r\n0\r\n\r\n${hidden}`,
  'a chunk that ends in a bare line feed': `5\r\nhello\n0\r\n\r\n${hidden}`,
  'a chunk size that ends in a bare line feed': `5\nhello\r\n0\r\n\r\n${hidden}`,
  'a length among the trailers': `5\r\nhello\r\n0\r\nContent-Length: ${hidden.length}\r\n\r\n${hidden}`,
  'a chunk extension with a line feed': `5;a\nb\r\nhello\r\n0\r\n\r\n${hidden}`,
};

function smuggling() {
  for (const [name, bytes] of Object.entries(refused)) {
    test(`refused: ${name}`, async () => {
      const { router, recorder } = await startWarm();
      const wire = new Wire(router.port());
      wire.write(bytes);
      const answer = await wire.untilClosed();
      assert.ok([400, 405, 417, 431, 501, 505].includes(statusOf(answer)), answer.slice(0, 200));
      assert.equal(answer.match(/HTTP\/1\.1 /g)!.length, 1, 'one answer, and no second one');
      assert.equal(recorder.text, '', 'no instance saw anything of it');
    });
  }

  for (const [name, body] of Object.entries(brokenBodies)) {
    test(`cut off: ${name}`, async () => {
      const { router, recorder } = await startWarm();
      const wire = new Wire(router.port());
      wire.write(post('Transfer-Encoding: chunked\r\n', body));
      const answer = await wire.untilClosed();
      assert.ok([0, 400].includes(statusOf(answer)), answer.slice(0, 200));
      assert.doesNotMatch(recorder.text, /GET \/hidden/);
      assert.doesNotMatch(recorder.text, /\r\n0\r\n\r\n/, 'what the instance saw of it never ends');
    });
  }

  test('what is chunked arrives chunked once more, without extensions and trailers that could confuse', async () => {
    const router = await startRouter();
    const recorder = await startRecorder();
    await router.serve(share(1, 100, recorder));
    const wire = new Wire(router.port());
    wire.write(post('Transfer-Encoding: Chunked\r\n', `5;ext=1\r\nhello\r\n0\r\nX-Trailer: 9\r\n\r\n`));
    await wire.until('an answer', () => wire.text.includes('ok'));
    assert.match(recorder.text, /transfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n$/);
    assert.doesNotMatch(recorder.text, /ext=1|X-Trailer/i);
    wire.socket.destroy();
  });

  test('a body that looks like a request is a body', async () => {
    const router = await startRouter();
    const recorder = await startRecorder();
    await router.serve(share(1, 100, recorder));
    const wire = new Wire(router.port());
    wire.write(post(`Content-Length: ${hidden.length}\r\n`, hidden));
    await wire.until('an answer', () => wire.text.includes('ok'));
    assert.match(recorder.text, new RegExp(`content-length: ${hidden.length}\r\n\r\nGET /hidden`));
    assert.equal(wire.text.match(/HTTP\/1\.1 /g)!.length, 1);
    wire.socket.destroy();
  });

  test('an absolute target of the same host is passed on as a path', async () => {
    const router = await startRouter();
    const recorder = await startRecorder();
    await router.serve(share(1, 100, recorder));
    for (const target of [`http://${host}/a?b`, `HTTP://${host.toUpperCase()}`, `http://${host}?q`]) {
      recorder.text = '';
      assert.equal((await ask(router.port(), { path: target })).status, 200);
      assert.match(recorder.text, /^GET \/(a\?b|\?q)? HTTP\/1\.1\r\n/);
    }
  });

  test('a response with two lengths is not passed on', async () => {
    const router = await startRouter();
    const server = createServer((socket) => {
      socket.on('error', () => {});
      socket.once('data', () => {
        socket.write(
          'HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nHTTP/1.1 200 OK\r\n\r\n',
        );
      });
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    after(() => server.close());
    const { port } = server.address() as AddressInfo;
    await router.serve(share(1, 100, { instance: 'odd', host: '127.0.0.1', port }));
    assert.equal((await ask(router.port())).status, 502);
  });
}

describe('request smuggling', smuggling);
