// What happens below HTTP: connections that dawdle, lie or talk nonsense, and those that are open when the service stops.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { after, describe, test } from 'node:test';
import { adminToken, startApp } from '../../helpers/app.ts';

const withinMs = 10_000;
const megabyte = 1024 * 1024;
const authorization = `Authorization: Bearer ${adminToken}\r\n`;

/** A connection, and all that came back on it so far. */
class Wire {
  readonly socket: Socket;
  text = '';
  closed = false;

  constructor(url: string) {
    const { hostname, port } = new URL(url);
    this.socket = connect(Number(port), hostname);
    this.socket.setEncoding('utf8');
    this.socket.on('data', (chunk) => {
      this.text += chunk;
    });
    this.socket.on('error', () => {}); // a reset is one of the ways to be cut off
    this.socket.on('close', () => {
      this.closed = true;
    });
  }

  write(text: string): void {
    this.socket.write(text);
  }

  /** Waits until what came back is as wanted. */
  async until(what: string, wanted: () => boolean): Promise<void> {
    const giveUp = AbortSignal.timeout(withinMs);
    while (!wanted()) {
      if (giveUp.aborted) assert.fail(`${what}: not within ${withinMs} ms; came back: ${this.text.slice(0, 500)}`);
      const heard = [once(this.socket, 'data', { signal: giveUp }), once(this.socket, 'close', { signal: giveUp })];
      if (this.closed) assert.fail(`${what}: the connection closed; came back: ${this.text.slice(0, 500)}`);
      await Promise.race(heard).catch(() => {});
    }
  }

  async untilClosed(): Promise<void> {
    if (!this.closed) await once(this.socket, 'close', { signal: AbortSignal.timeout(withinMs) });
  }

  /** The answers so far; each has a Content-Length. */
  answers(): { status: number; head: string; body: string }[] {
    const found = [];
    let rest = this.text;
    for (;;) {
      const end = rest.indexOf('\r\n\r\n');
      if (end === -1) return found;
      const head = rest.slice(0, end);
      const length = Number(/content-length: (\d+)/i.exec(head)?.[1] ?? 0);
      const bytes = Buffer.from(rest.slice(end + 4));
      if (bytes.length < length) return found;
      found.push({ status: Number(head.slice(9, 12)), head, body: bytes.subarray(0, length).toString() });
      rest = bytes.subarray(length).toString();
    }
  }

  async answer(count = 1) {
    await this.until(`answer ${count}`, () => this.answers().length >= count);
    return this.answers()[count - 1]!;
  }
}

function assertEnvelope({ status, head, body }: { status: number; head: string; body: string }, code: string) {
  const { error } = JSON.parse(body);
  assert.equal(error.code, code);
  assert.equal(error.status, status);
  assert.equal(error.request_id, /x-request-id: (\S+)/i.exec(head)?.[1]);
  assert.match(error.docs, new RegExp(`/docs/errors#${code}$`));
}

const impatient = await startApp({ timeouts: { headersMs: 300, requestMs: 600, keepAliveMs: 400 } });
const usual = await startApp();
after(() => Promise.all([impatient.stop(), usual.stop()]));

describe('connections', () => {
  const wires: Wire[] = [];
  const open = () => {
    const wire = new Wire(impatient.url);
    wires.push(wire);
    return wire;
  };

  after(() => {
    for (const { socket } of wires) socket.destroy();
  });

  test('headers that do not come: 408, and the connection ends', async () => {
    const wire = open();
    wire.write('GET /v1/projects HTTP/1.1\r\nHost: x\r\nX-Slow: ');
    assertEnvelope(await wire.answer(), 'request_timeout');
    await wire.untilClosed();
  });

  test('headers that come one byte at a time are cut off all the same', async () => {
    const wire = open();
    wire.write('GET /v1/projects HTTP/1.1\r\nHost: x\r\nX-Slow: ');
    const drip = setInterval(() => wire.write('x'), 20);
    try {
      assertEnvelope(await wire.answer(), 'request_timeout');
      await wire.untilClosed();
    } finally {
      clearInterval(drip);
    }
  });

  test('half a body: 408, and the connection ends', async () => {
    const wire = open();
    const head = `POST /v1/projects HTTP/1.1\r\nHost: x\r\n${authorization}Content-Type: application/json\r\n`;
    wire.write(`${head}Content-Length: 100\r\n\r\n{"name":`);
    assertEnvelope(await wire.answer(), 'request_timeout');
    await wire.untilClosed();
  });

  test('an idle connection is closed after the answer it waited for', async () => {
    const wire = open();
    wire.write(`GET /v1/projects HTTP/1.1\r\nHost: x\r\n${authorization}\r\n`);
    assert.equal((await wire.answer()).status, 200);
    await wire.untilClosed();
    assert.equal(wire.answers().length, 1);
  });

  test('a connection that says nothing is closed', async () => {
    await open().untilClosed();
  });

  test('garbage: 400', async () => {
    for (const garbage of [
      '\x16\x03\x01\x02\x00\x01\x00',
      'hello\r\n\r\n',
      'GET / HTTP/9.9\r\n\r\n',
      '\0\0\0\0\r\n\r\n',
    ]) {
      const wire = open();
      wire.socket.write(garbage, 'latin1');
      const answer = await wire.answer();
      assert.equal(answer.status, 400, JSON.stringify(garbage));
      assertEnvelope(answer, 'invalid_request');
      await wire.untilClosed();
    }
  });

  test('headers without end: an error answer, and the connection ends', async () => {
    const wire = open();
    wire.write(`GET /v1/projects HTTP/1.1\r\nHost: x\r\nX-Huge: ${'x'.repeat(100_000)}\r\n\r\n`);
    const answer = await wire.answer();
    assert.equal(answer.status, 400);
    assertEnvelope(answer, 'invalid_request');
    await wire.untilClosed();
  });

  test('Content-Length together with Transfer-Encoding: 400, and no second request is seen in it', async () => {
    const wire = open();
    const head = `POST /v1/projects HTTP/1.1\r\nHost: x\r\n${authorization}Content-Type: application/json\r\n`;
    const hidden = `GET /v1/token HTTP/1.1\r\nHost: x\r\n${authorization}\r\n`;
    wire.write(`${head}Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n${hidden}`);
    assertEnvelope(await wire.answer(), 'invalid_request');
    await wire.untilClosed();
    assert.equal(wire.answers().length, 1);
  });

  test('an Expect nobody knows changes nothing', async () => {
    const wire = open();
    wire.write(`GET /v1/projects HTTP/1.1\r\nHost: x\r\n${authorization}Expect: nonsense\r\n\r\n`);
    assert.equal((await wire.answer()).status, 200);
  });

  test('requests sent without waiting are answered in their order', async () => {
    const wire = open();
    const paths = ['/v1/token', '/v1/nothing', '/v1/projects', '/v1/regions', '/v1/token'];
    wire.write(paths.map((path) => `GET ${path} HTTP/1.1\r\nHost: x\r\n${authorization}\r\n`).join(''));
    await wire.answer(paths.length);
    assert.deepEqual(
      wire.answers().map(({ status, body }) => [status, Object.keys(JSON.parse(body))[0]]),
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
  /** Writes on whatever is answered, until the other side has had enough; gives what was answered and how much it took. */
  async function pour(head: string, frame: (chunk: string) => string) {
    const wire = new Wire(usual.url);
    wire.write(
      `POST /v1/projects HTTP/1.1\r\nHost: x\r\n${authorization}Content-Type: application/json\r\n${head}\r\n`,
    );
    const chunk = frame('x'.repeat(64 * 1024));
    for (let sent = 0; sent < 20 * megabyte && !wire.closed; sent += 64 * 1024) {
      if (wire.socket.write(chunk)) await new Promise((resolve) => setImmediate(resolve));
      else await Promise.race([once(wire.socket, 'drain'), once(wire.socket, 'close')]).catch(() => {});
    }
    const answer = await wire.answer();
    await wire.untilClosed();
    return { answer, taken: wire.socket.bytesWritten - wire.socket.writableLength };
  }

  // What the kernel buffers on the way counts as taken, so this cannot be exact: well below 20 MB is what it shows.
  test('is refused by its Content-Length before it is read', async () => {
    const { answer, taken } = await pour(`Content-Length: ${20 * megabyte}\r\n`, (chunk) => chunk);
    assertEnvelope(answer, 'body_too_large');
    assert.equal(answer.status, 413);
    assert.ok(taken < 8 * megabyte, `${taken} bytes were taken`);
  });

  test('is refused in a way that an ordinary client can read', async () => {
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
  test('what is under way is answered, what comes later gets 503, and all connections end', async () => {
    const service = await startApp();
    const body = '{"name":"In time"}';
    const head = `POST /v1/projects HTTP/1.1\r\nHost: x\r\n${authorization}Content-Type: application/json\r\n`;
    const busy = new Wire(service.url);
    const kept = new Wire(service.url);
    const idle = new Wire(service.url);
    try {
      for (const wire of [kept, idle]) {
        wire.write(`GET /v1/token HTTP/1.1\r\nHost: x\r\n${authorization}\r\n`);
        await wire.answer();
      }
      kept.write('GET /v1/projects HTTP/1.1\r\nHost: x\r\n');
      busy.write(`${head}Content-Length: ${body.length}\r\nExpect: 100-continue\r\n\r\n`);
      await busy.until('leave to go on', () => busy.text.includes('100 Continue'));
      let stopped = false;
      const stopping = service.stop().then(() => {
        stopped = true;
      });
      await idle.untilClosed();

      kept.write(`${authorization}\r\n`);
      const refused = await kept.answer(2);
      assert.equal(refused.status, 503);
      assertEnvelope(refused, 'shutting_down');
      assert.match(refused.head, /retry-after: \d+/i);
      assert.match(refused.head, /x-ratelimit-remaining: \d+/i);
      await kept.untilClosed();

      assert.equal(stopped, false, 'it waits for the request under way');
      busy.text = '';
      busy.write(body);
      const answer = await busy.answer();
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
