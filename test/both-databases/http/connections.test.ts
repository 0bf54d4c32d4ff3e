// Connections that send slowly, too much or no valid HTTP, and those that are open when the service stops.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { after, describe, test } from 'node:test';
import { adminToken, startApp, type TestApp } from '../../helpers/app.ts';
import { Wire } from '../../helpers/raw-http.ts';

const megabyte = 1024 * 1024;
const authorization = `Authorization: Bearer ${adminToken}\r\n`;

interface Answer {
  status: number;
  head: string;
  body: string;
}

const wireTo = ({ url }: TestApp): Wire => new Wire(Number(new URL(url).port), new URL(url).hostname);

/** The complete answers so far; each has a Content-Length. */
function answersOf({ text }: Wire): Answer[] {
  const found: Answer[] = [];
  for (let at = 0; ; ) {
    const end = text.indexOf('\r\n\r\n', at);
    if (end === -1) return found;
    const head = text.slice(at, end);
    at = end + 4 + Number(/content-length: (\d+)/i.exec(head)?.[1] ?? 0);
    if (text.length < at) return found;
    const body = Buffer.from(text.slice(end + 4, at), 'latin1').toString();
    found.push({ status: Number(head.slice(9, 12)), head, body });
  }
}

async function answerOf(wire: Wire, count = 1): Promise<Answer> {
  await wire.until(`answer ${count}`, () => answersOf(wire).length >= count);
  return answersOf(wire)[count - 1]!;
}

function assertEnvelope({ status, head, body }: Answer, code: string) {
  const { error } = JSON.parse(body);
  assert.equal(error.code, code);
  assert.equal(error.status, status);
  assert.equal(error.request_id, /x-request-id: (\S+)/i.exec(head)?.[1]);
  assert.match(error.docs, new RegExp(`/docs/errors#${code}$`));
}

/** Only for tests that wait for a timeout: under load, it cuts off ordinary requests too. */
const impatient = await startApp({ timeouts: { headersMs: 300, requestMs: 600, keepAliveMs: 400 } });
const usual = await startApp();
after(() => Promise.all([impatient.stop(), usual.stop()]));

const wires: Wire[] = [];
const open = (app: TestApp) => {
  const wire = wireTo(app);
  wires.push(wire);
  return wire;
};

after(() => {
  for (const { socket } of wires) socket.destroy();
});

describe('timeouts', () => {
  test('incomplete headers: 408, and the connection closes', async () => {
    const wire = open(impatient);
    wire.write('GET /v1/projects HTTP/1.1\r\nHost: x\r\nX-Slow: ');
    assertEnvelope(await answerOf(wire), 'request_timeout');
    await wire.untilClosed();
  });

  test('headers sent one byte at a time: 408, and the connection closes', async () => {
    const wire = open(impatient);
    wire.write('GET /v1/projects HTTP/1.1\r\nHost: x\r\nX-Slow: ');
    const drip = setInterval(() => wire.write('x'), 20);
    try {
      assertEnvelope(await answerOf(wire), 'request_timeout');
      await wire.untilClosed();
    } finally {
      clearInterval(drip);
    }
  });

  test('half a body: 408, and the connection closes', async () => {
    const wire = open(impatient);
    const head = `POST /v1/projects HTTP/1.1\r\nHost: x\r\n${authorization}Content-Type: application/json\r\n`;
    wire.write(`${head}Content-Length: 100\r\n\r\n{"name":`);
    assertEnvelope(await answerOf(wire), 'request_timeout');
    await wire.untilClosed();
  });

  test('a connection that stays idle after its answer is closed', async () => {
    const wire = open(impatient);
    wire.write(`GET /v1/projects HTTP/1.1\r\nHost: x\r\n${authorization}\r\n`);
    assert.equal((await answerOf(wire)).status, 200);
    await wire.untilClosed();
    assert.equal(answersOf(wire).length, 1);
  });

  test('a connection that sends nothing is closed', async () => {
    await open(impatient).untilClosed();
  });
});

describe('invalid and unusual HTTP', () => {
  test('garbage: 400', async () => {
    for (const garbage of [
      '\x16\x03\x01\x02\x00\x01\x00',
      'hello\r\n\r\n',
      'GET / HTTP/9.9\r\n\r\n',
      '\0\0\0\0\r\n\r\n',
    ]) {
      const wire = open(usual);
      wire.write(garbage);
      const answer = await answerOf(wire);
      assert.equal(answer.status, 400, JSON.stringify(garbage));
      assertEnvelope(answer, 'invalid_request');
      await wire.untilClosed();
    }
  });

  test('headers of 100 kB: 400, and the connection closes', async () => {
    const wire = open(usual);
    wire.write(`GET /v1/projects HTTP/1.1\r\nHost: x\r\nX-Huge: ${'x'.repeat(100_000)}\r\n\r\n`);
    const answer = await answerOf(wire);
    assert.equal(answer.status, 400);
    assertEnvelope(answer, 'invalid_request');
    await wire.untilClosed();
  });

  test('Content-Length together with Transfer-Encoding: 400, and the request hidden in the body is not served', async () => {
    const wire = open(usual);
    const head = `POST /v1/projects HTTP/1.1\r\nHost: x\r\n${authorization}Content-Type: application/json\r\n`;
    const hidden = `GET /v1/token HTTP/1.1\r\nHost: x\r\n${authorization}\r\n`;
    wire.write(`${head}Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n${hidden}`);
    assertEnvelope(await answerOf(wire), 'invalid_request');
    await wire.untilClosed();
    assert.equal(answersOf(wire).length, 1);
  });

  test('an unknown Expect header is ignored', async () => {
    const wire = open(usual);
    wire.write(`GET /v1/projects HTTP/1.1\r\nHost: x\r\n${authorization}Expect: nonsense\r\n\r\n`);
    assert.equal((await answerOf(wire)).status, 200);
  });

  test('an absolute target means what its path alone means', async () => {
    const send = async (target: string) => {
      const wire = open(usual);
      wire.write(`GET ${target} HTTP/1.1\r\nHost: x\r\n${authorization}\r\n`);
      return answerOf(wire);
    };
    assert.deepEqual(JSON.parse((await send('http://x/v1/projects?limit=1')).body).data, []);
    assert.equal((await send('HTTPS://elsewhere:8080/v1/projects')).status, 200);
    assertEnvelope(await send('http://x/v1/nothing'), 'route_not_found');
    assertEnvelope(await send('http://x/v1/projects?token=secret'), 'token_in_query');
    assertEnvelope(await send('http://x/v1/%zz'), 'invalid_request');
    assert.equal((await send('http://x/livez')).status, 200);
    assert.equal((await send('http://x')).status, (await send('/')).status);
  });

  test('pipelined requests are answered in order', async () => {
    const wire = open(usual);
    const paths = ['/v1/token', '/v1/nothing', '/v1/projects', '/v1/regions', '/v1/token'];
    wire.write(paths.map((path) => `GET ${path} HTTP/1.1\r\nHost: x\r\n${authorization}\r\n`).join(''));
    await answerOf(wire, paths.length);
    assert.deepEqual(
      answersOf(wire).map(({ status, body }) => [status, Object.keys(JSON.parse(body))[0]]),
      [
        [200, 'id'],
        [404, 'error'],
        [200, 'data'],
        [200, 'data'],
        [200, 'id'],
      ],
    );
  });
});

describe('a body of 20 MB', () => {
  /** Keeps writing until the service closes the connection; returns the answer and how many bytes were sent. */
  async function pour(head: string, frame: (chunk: string) => string) {
    const wire = wireTo(usual);
    wire.write(
      `POST /v1/projects HTTP/1.1\r\nHost: x\r\n${authorization}Content-Type: application/json\r\n${head}\r\n`,
    );
    const chunk = frame('x'.repeat(64 * 1024));
    for (let sent = 0; sent < 20 * megabyte && !wire.closed; sent += 64 * 1024) {
      if (wire.socket.write(chunk)) await new Promise((resolve) => setImmediate(resolve));
      else await Promise.race([once(wire.socket, 'drain'), once(wire.socket, 'close')]).catch(() => {});
    }
    const answer = await answerOf(wire);
    await wire.untilClosed();
    return { answer, taken: wire.socket.bytesWritten - wire.socket.writableLength };
  }

  // Bytes in the kernel's buffers count as taken too, so the limits are generous, but well below 20 MB.
  test('is refused by its Content-Length before it is read', async () => {
    const { answer, taken } = await pour(`Content-Length: ${20 * megabyte}\r\n`, (chunk) => chunk);
    assertEnvelope(answer, 'body_too_large');
    assert.equal(answer.status, 413);
    assert.ok(taken < 8 * megabyte, `${taken} bytes were taken`);
  });

  test('is refused with an answer that an ordinary client can read', async () => {
    const { status, body } = await usual.call('POST', '/v1/projects', { body: 'x'.repeat(20 * megabyte) });
    assert.equal(status, 413);
    assert.equal(body.error.code, 'body_too_large');
  });

  test('is refused when its chunks pass 1 MiB', async () => {
    const framed = (chunk: string) => `${chunk.length.toString(16)}\r\n${chunk}\r\n`;
    const { answer, taken } = await pour('Transfer-Encoding: chunked\r\n', framed);
    assertEnvelope(answer, 'body_too_large');
    assert.equal(answer.status, 413);
    assert.ok(taken < 10 * megabyte, `${taken} bytes were taken`);
  });
});

describe('while the service stops', () => {
  test('requests in progress are answered, later ones get 503, and all connections close', async () => {
    const service = await startApp();
    const body = '{"name":"In time"}';
    const head = `POST /v1/projects HTTP/1.1\r\nHost: x\r\n${authorization}Content-Type: application/json\r\n`;
    const busy = wireTo(service);
    const kept = wireTo(service);
    const idle = wireTo(service);
    try {
      for (const wire of [kept, idle]) {
        wire.write(`GET /v1/token HTTP/1.1\r\nHost: x\r\n${authorization}\r\n`);
        await answerOf(wire);
      }
      kept.write('GET /v1/projects HTTP/1.1\r\nHost: x\r\n');
      busy.write(`${head}Content-Length: ${body.length}\r\nExpect: 100-continue\r\n\r\n`);
      await busy.until('100 Continue', () => busy.text.includes('100 Continue'));
      let stopped = false;
      const stopping = service.stop().then(() => {
        stopped = true;
      });
      await idle.untilClosed();

      kept.write(`${authorization}\r\n`);
      const refused = await answerOf(kept, 2);
      assert.equal(refused.status, 503);
      assertEnvelope(refused, 'shutting_down');
      assert.match(refused.head, /retry-after: \d+/i);
      assert.match(refused.head, /x-ratelimit-remaining: \d+/i);
      await kept.untilClosed();

      assert.equal(stopped, false, 'it waits for the request in progress');
      busy.text = '';
      busy.write(body);
      const answer = await answerOf(busy);
      assert.equal(answer.status, 201);
      assert.equal(JSON.parse(answer.body).name, 'In time');
      await busy.untilClosed();
      await stopping;
    } finally {
      for (const { socket } of [busy, kept, idle]) socket.destroy();
      await service.stop();
    }
  });
});
