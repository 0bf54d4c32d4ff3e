// The connections to an instance, with an instance that says by hand what it says, and when.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { Readable } from 'node:stream';
import { after, describe, test } from 'node:test';
import {
  type ConnectionUser,
  type InstanceConnection,
  InstanceConnections,
} from '../../src/traffic/proxy/instance-connections.ts';
import type { InstanceRequest } from '../../src/traffic/proxy/instance-request.ts';
import { defaultLimits, type ProxyLimits } from '../../src/traffic/proxy/limits.ts';
import { until } from '../helpers/wait.ts';

const ok = 'HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n';

/** The instance's end of a connection, with what it has received. */
interface End {
  socket: Socket;
  text: string;
  closed: boolean;
}

async function startRaw(limits: Partial<ProxyLimits> = {}) {
  const ends: End[] = [];
  const server = createServer((socket) => {
    const end: End = { socket, text: '', closed: false };
    ends.push(end);
    socket.setEncoding('latin1');
    socket.on('data', (text: string) => {
      end.text += text;
    });
    socket.on('error', () => {});
    socket.on('close', () => {
      end.closed = true;
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const connections = new InstanceConnections({ host: '127.0.0.1', port }, { ...defaultLimits, ...limits });
  after(async () => {
    await connections.destroy();
    for (const { socket } of ends) socket.destroy();
    server.close();
  });
  return { ends, connections, server };
}

class User implements ConnectionUser {
  isOpen = true;
  connection: InstanceConnection | null = null;
  begun = false;
  statuses: number[] = [];
  body = '';
  ended = false;
  error: (Error & { code?: string }) | null = null;
  onConnected(connection: InstanceConnection): void {
    this.connection = connection;
  }
  onBegun(): void {
    this.begun = true;
  }
  onInformation(): boolean {
    return true;
  }
  onHead(status: number): void {
    this.statuses.push(status);
  }
  onData(bytes: Buffer): boolean {
    this.body += bytes.toString('latin1');
    return true;
  }
  onEnd(): void {
    this.ended = true;
  }
  onSwitch(): void {}
  onError(error: Error): void {
    this.error = error;
  }
}

function send(connections: InstanceConnections, request: Partial<InstanceRequest> = {}): User {
  const user = new User();
  const { body = null, method = 'GET', headers = ['Host', 'a'], path = '/', upgrade = null } = request;
  connections.send({ path, method, headers, body, upgrade, anew: false }, user);
  return user;
}

/** After which the connection is kept. */
async function exchangeOne({ ends, connections }: Awaited<ReturnType<typeof startRaw>>): Promise<End> {
  const first = send(connections);
  await until('the first request', () => ends[0]?.text.endsWith('\r\n\r\n') === true);
  ends[0]!.socket.write(ok);
  await until('its end', () => first.ended);
  return ends[0]!;
}

describe('an upload', () => {
  test('may take longer than the time until a response, where the instance reads slowly but steadily', async () => {
    const answerHeadMs = 800;
    const { ends, connections } = await startRaw({ answerHeadMs });
    let goesOn = true;
    const piece = Buffer.alloc(65_536);
    const body = new Readable({
      read() {
        this.push(goesOn ? piece : null);
      },
    });
    const user = send(connections, { method: 'POST', body });
    await until('a connection', () => ends.length === 1);
    const [{ socket }] = ends as [End];
    const startedAt = performance.now();
    socket.on('data', () => {
      if (!goesOn) return;
      socket.pause();
      setTimeout(() => socket.resume(), 5);
    });
    await until('a long time', () => user.error !== null || performance.now() - startedAt > answerHeadMs * 2.5);
    assert.equal(user.error, null);
    goesOn = false;
    await until('the end of the upload', () => ends[0]!.text.endsWith('\r\n0\r\n\r\n'));
    socket.write(ok);
    await until('the response', () => user.ended);
    assert.deepEqual([user.statuses, user.error], [[200], null]);
  });

  test('is given up where the instance reads nothing of it', async () => {
    const { ends, connections, server } = await startRaw({ answerHeadMs: 300 });
    server.on('connection', (socket) => socket.pause());
    const piece = Buffer.alloc(65_536);
    const body = new Readable({
      read() {
        this.push(piece);
      },
    });
    const user = send(connections, { method: 'POST', body });
    await until('the end of it', () => user.error !== null);
    assert.equal(user.error!.code, 'UND_ERR_HEADERS_TIMEOUT');
    assert.equal(ends.length, 1);
  });

  test('of which nothing was sent takes no response that arrives on a kept connection, and stays whole', async () => {
    const raw = await startRaw();
    const kept = await exchangeOne(raw);
    const body = new Readable({ read() {} });
    const user = send(raw.connections, { method: 'POST', body });
    await until('the kept connection', () => user.connection !== null);
    kept.socket.write(`HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nstale`);
    await until('a refusal', () => user.error !== null);
    body.push('whole');
    assert.deepEqual([user.statuses, user.begun, user.body, user.ended], [[], false, '', false]);
    assert.equal(raw.ends.length, 1);
    assert.equal(body.isPaused(), true);
    assert.equal(String(body.read()), 'whole');
    assert.ok(!kept.text.includes('POST'));
  });

  test('with a method that has none in most cases is the last on its connection, and says so', async () => {
    for (const method of ['GET', 'DELETE', 'OPTIONS']) {
      const { ends, connections } = await startRaw();
      const user = send(connections, { method, body: Readable.from([Buffer.from('hi')], { objectMode: false }) });
      await until('the request', () => ends[0]?.text.endsWith('\r\n0\r\n\r\n') === true);
      assert.match(ends[0]!.text, /\r\nconnection: close\r\n/);
      ends[0]!.socket.write(ok);
      await until('the response', () => user.ended && ends[0]!.closed);
    }
  });
});

describe('a kept connection', () => {
  test('carries the next request', async () => {
    const raw = await startRaw();
    const kept = await exchangeOne(raw);
    const user = send(raw.connections, { path: '/second' });
    await until('it', () => kept.text.includes('/second'));
    kept.socket.write(ok);
    await until('the response', () => user.ended);
    assert.equal(raw.ends.length, 1);
  });

  for (const [what, text] of [
    ['a response that nobody asked for', ok],
    ['an empty line', '\r\n'],
    ['a byte', 'H'],
  ] as const) {
    test(`is closed after ${what}`, async () => {
      const raw = await startRaw();
      const first = send(raw.connections);
      await until('the first request', () => raw.ends[0]?.text.endsWith('\r\n\r\n') === true);
      raw.ends[0]!.socket.write(ok + text);
      await until('its end', () => first.ended && raw.ends[0]!.closed);
      assert.equal(first.error, null);
      const second = send(raw.connections);
      await until('another connection', () => raw.ends[1]?.text.endsWith('\r\n\r\n') === true);
      raw.ends[1]!.socket.write(ok);
      await until('the response', () => second.ended);
    });
  }

  test('is not kept where the response ends before the request', async () => {
    const { ends, connections } = await startRaw();
    const body = new Readable({ read() {} });
    const user = send(connections, { method: 'POST', body });
    body.push('some');
    await until('some of it', () => ends[0]?.text.endsWith('some') === true);
    ends[0]!.socket.write(ok);
    await until('the response', () => user.ended && ends[0]!.closed);
    body.push('POST / HTTP/1.1');
    assert.deepEqual([user.statuses, user.error], [[200], null]);
  });
});

describe('a malformed request is not sent', () => {
  const cases: [what: string, request: Partial<InstanceRequest>][] = [
    ['a space in the path', { path: '/ HTTP/1.1' }],
    ['a line end in the path', { path: '/\r\nX: 1' }],
    ['a character beyond Latin-1 in the path', { path: '/\u010d\u010a' }],
    ['a line end in the method', { method: 'GET / HTTP/1.1\r\nX: 1\r\n\r\nGET' }],
    ['no method', { method: '' }],
    ['a line end in a value', { headers: ['Host', 'a', 'X', '1\r\nY: 2'] }],
    ['a character beyond Latin-1 in a value', { headers: ['Host', 'a', 'X', '\u010d\u010aY: 2'] }],
    ['a colon in a name', { headers: ['Host', 'a', 'X: 1\r\nY', '2'] }],
    ['an empty name', { headers: ['Host', 'a', '', '2'] }],
    ['two lengths', { headers: ['Host', 'a', 'Content-Length', '1', 'content-length', '1'] }],
    ['a length that is no number', { headers: ['Host', 'a', 'Content-Length', '1, 1'] }],
    ['an encoding of its own', { headers: ['Host', 'a', 'Transfer-Encoding', 'chunked'] }],
    ['a line end in the protocol', { upgrade: 'x\r\nY: 1' }],
  ];
  for (const [what, request] of cases) {
    test(what, async () => {
      const { connections, ends } = await startRaw();
      const user = send(connections, request);
      assert.equal(user.error?.code, 'UND_ERR_INVALID_ARG');
      assert.equal(ends.length, 0);
    });
  }

  for (const [what, sent] of [
    ['longer', '123456'],
    ['shorter', '1234'],
  ] as const) {
    test(`a body that is ${what} than announced`, async () => {
      const { connections, ends } = await startRaw();
      const body = Readable.from([Buffer.from(sent)], { objectMode: false });
      const user = send(connections, { method: 'POST', headers: ['Host', 'a', 'Content-Length', '5'], body });
      await until('a refusal', () => user.error !== null);
      assert.equal(user.error!.code, 'UND_ERR_REQ_CONTENT_LENGTH_MISMATCH');
      assert.ok(!ends[0]!.text.includes('123456'));
    });
  }
});
