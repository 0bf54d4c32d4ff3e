// Requests that two readers could understand in two ways. Each is refused, or reaches the instance as a single request
// without ambiguity; no instance ever sees the request hidden in it.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { after, describe, test } from 'node:test';
import { statusOf, Wire } from '../helpers/raw-http.ts';
import { ask, host, share, startRouter } from '../helpers/router.ts';
import { onPlane, plane } from '../helpers/router-plane.ts';
import { until } from '../helpers/wait.ts';
import { bareLineFeeds, brokenBodies, hidden, post, refused, repairedByHaproxy } from './ambiguous-requests.ts';

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

const isRepaired = (name: string) => plane === 'haproxy' && repairedByHaproxy.has(name);

/** One request has arrived, and no reader could find another length or a second request in it. */
function assertOneClearRequest(text: string): void {
  const head = text.slice(0, text.indexOf('\r\n\r\n'));
  assert.match(head, /^(GET|POST) \/ HTTP\/1\.1\r\n/);
  assert.doesNotMatch(head, /[^\r]\n|\r[^\n]|\r\n[ \t]/, 'no bare line ends, no folded lines');
  assert.ok((head.match(/\r\n(content-length|transfer-encoding):/gi) ?? []).length <= 1, 'one length');
  assert.doesNotMatch(text, /\/hidden/);
}

function smuggling() {
  for (const [name, bytes] of Object.entries(refused)) {
    test(`${isRepaired(name) ? 'repaired' : 'refused'}: ${name}`, async () => {
      const { router, recorder } = await startWarm();
      const wire = new Wire(router.port());
      wire.write(bytes);
      const answer = await wire.untilClosed();
      if (isRepaired(name)) return assertOneClearRequest(recorder.text);
      assert.ok([400, 405, 417, 422, 431, 501, 505].includes(statusOf(answer)), answer.slice(0, 200));
      assert.equal(answer.match(/HTTP\/1\.1 /g)!.length, 1, 'one answer, and no second one');
      assert.equal(recorder.text, '', 'no instance saw anything of it');
    });
  }

  for (const [name, body] of Object.entries(brokenBodies)) {
    test(`${isRepaired(name) ? 'repaired' : 'cut off'}: ${name}`, async () => {
      const { router, recorder } = await startWarm();
      const wire = new Wire(router.port());
      wire.write(post('Transfer-Encoding: chunked\r\n', body));
      const answer = await wire.untilClosed();
      assert.doesNotMatch(recorder.text, /GET \/hidden/);
      if (isRepaired(name)) {
        assert.equal(statusOf(answer), 200);
        assertOneClearRequest(recorder.text);
        assert.match(recorder.text, /\r\n\r\n5\r\nhello\r\n0\r\n/);
        return;
      }
      assert.ok([0, 400].includes(statusOf(answer)), answer.slice(0, 200));
      assert.doesNotMatch(recorder.text, /\r\n0\r\n\r\n/, 'what the instance saw of it never ends');
    });
  }

  test('bare line feeds: refused, or the line ends that they are meant as', async () => {
    const { router, recorder } = await startWarm();
    const wire = new Wire(router.port());
    wire.write(bareLineFeeds);
    if (plane === 'builtin') {
      assert.equal(statusOf(await wire.untilClosed()), 400);
      assert.equal(recorder.text, '');
      return;
    }
    await wire.until('an answer to each of two requests', () => wire.text.match(/\r\n\r\nok/g)?.length === 2);
    const [first, second, ...more] = recorder.text.split('\r\n\r\n');
    assertOneClearRequest(`${first}\r\n\r\n`);
    assert.match(
      second!,
      /^GET \/hidden HTTP\/1\.1\r\n[\s\S]*x-forwarded-for: 127\.0\.0\.1(\r\n|$)/,
      'checked like any other',
    );
    assert.deepEqual(more, ['']);
    wire.socket.destroy();
  });

  test('what is chunked arrives chunked once more, without extensions', async () => {
    const router = await startRouter();
    const recorder = await startRecorder();
    await router.serve(share(1, 100, recorder));
    const wire = new Wire(router.port());
    wire.write(post('Transfer-Encoding: Chunked\r\n', `5;ext=1\r\nhello\r\n0\r\nX-Trailer: 9\r\n\r\n`));
    await wire.until('an answer', () => wire.text.includes('ok'));
    await until('all of the body', () => /\r\n0\r\n[\s\S]*\r\n$/.test(recorder.text));
    const trailers = onPlane({ builtin: '', haproxy: 'x-trailer: 9\r\n' });
    const [, body] = recorder.text.split(/\r\n\r\n(.*)/s);
    assert.match(recorder.text, /\r\ntransfer-encoding: chunked\r\n/i);
    assert.equal(body, `5\r\nhello\r\n0\r\n${trailers}\r\n`);
    wire.socket.destroy();
  });

  test('a body that looks like a request is a body', async () => {
    const router = await startRouter();
    const recorder = await startRecorder();
    await router.serve(share(1, 100, recorder));
    const wire = new Wire(router.port());
    wire.write(post(`Content-Length: ${hidden.length}\r\n`, hidden));
    await wire.until('an answer', () => wire.text.includes('ok'));
    await until('all of the body', () => recorder.text.endsWith(hidden));
    assert.match(recorder.text, new RegExp(`\ncontent-length: ${hidden.length}(\r\n[^\r\n]+)*\r\n\r\nGET /hidden`));
    assert.equal(wire.text.match(/HTTP\/1\.1 /g)!.length, 1);
    wire.socket.destroy();
  });

  test('an absolute target of the same host is passed on as a path', async () => {
    const router = await startRouter();
    const recorder = await startRecorder();
    await router.serve(share(1, 100, recorder));
    const withoutPath = onPlane({ builtin: [`http://${host}?q`], haproxy: [] }); // HAProxy takes that for another host
    for (const target of [`http://${host}/a?b`, `HTTP://${host.toUpperCase()}`, ...withoutPath]) {
      recorder.text = '';
      assert.equal((await ask(router.port(), { path: target })).status, 200);
      assert.match(recorder.text, /^GET \/(a\?b|\?q)? HTTP\/1\.1\r\n/);
    }
  });

  test('a response with two lengths is refused or repaired, and what is behind it reaches nobody', async () => {
    const router = await startRouter();
    const server = createServer((socket) => {
      socket.on('error', () => {});
      socket.once('data', () => {
        socket.write(
          'HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nHTTP/1.1 203 Hidden\r\n\r\n',
        );
      });
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    after(() => server.close());
    const { port } = server.address() as AddressInfo;
    await router.serve(share(1, 100, { instance: 'odd', host: '127.0.0.1', port }));
    for (let i = 0; i < 3; i++) {
      const { status, body, headers } = await ask(router.port());
      assert.equal(status, onPlane({ builtin: 502, haproxy: 200 }));
      if (plane === 'haproxy') assert.deepEqual([body, headers['content-length']], ['', undefined]);
    }
  });
}

describe('request smuggling', smuggling);
