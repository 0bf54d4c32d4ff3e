// Visitors and instances that want more than their share, or claim to be someone else.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { constants } from 'node:http2';
import { type AddressInfo, createServer } from 'node:net';
import { after, describe, test } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { networkOf } from '../../src/lib/address.ts';
import type { Target } from '../../src/traffic/data-plane.ts';
import { statusOf, Wire } from '../helpers/raw-http.ts';
import { ask, getRequest, named, serveInstance, share, startInstance, startRouter } from '../helpers/router.ts';
import { plane } from '../helpers/router-plane.ts';
import { openSession, serveTls } from '../helpers/router-tls.ts';
import { until } from '../helpers/wait.ts';

setFlagsFromString('--expose-gc');
const collectGarbage: () => void = runInNewContext('gc');

interface Informer extends Target {
  sent: number;
  isLetGo: boolean;
}

/** An instance that answers with 103 as long as it can, and then with 200. */
async function startInformer(most: number): Promise<Informer> {
  const informer = { instance: 'informer', host: '127.0.0.1', port: 0, sent: 0, isLetGo: false };
  const server = createServer((socket) => {
    socket.on('error', () => {});
    socket.on('close', () => {
      informer.isLetGo = true;
    });
    socket.on('data', () => {
      const more = () => {
        while (informer.sent < most && !socket.destroyed) {
          informer.sent++;
          if (!socket.write('HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\n\r\n')) {
            socket.once('drain', more);
            return;
          }
        }
        if (informer.sent === most) socket.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok');
      };
      more();
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  after(() => server.close());
  informer.port = (server.address() as AddressInfo).port;
  return informer;
}

/** Nothing piles up while a visitor does not read. */
async function waitsForVisitor(wire: Wire, informer: Informer): Promise<void> {
  wire.write(getRequest());
  await wire.until('the first', () => wire.text.includes('103'));
  wire.socket.pause();
  await until('the instance is held back', async () => {
    const { sent } = informer;
    await new Promise((resolve) => setTimeout(resolve, 300));
    return informer.sent === sent;
  });
  wire.socket.destroy();
  await until('the instance is let go', () => informer.isLetGo);
}

function information() {
  test('some 103 are passed on before the response', async () => {
    const informer = await startInformer(5);
    const router = await startRouter();
    await router.serve(share(1, 100, informer));
    const wire = new Wire(router.port());
    wire.write(getRequest('/', 'Connection: close\r\n'));
    const text = await wire.untilClosed();
    assert.equal(text.match(/HTTP\/1\.1 103/g)!.length, 5);
    assert.match(text, /HTTP\/1\.1 200 OK[\s\S]*ok$/);
  });

  test('an instance that sends them without end is cut off: 502; by HAProxy once the visitor leaves', async () => {
    const informer = await startInformer(Number.POSITIVE_INFINITY);
    const router = await startRouter();
    await router.serve(share(1, 100, informer));
    const wire = new Wire(router.port());
    if (plane === 'haproxy') return waitsForVisitor(wire, informer);
    wire.write(getRequest('/', 'Connection: close\r\n'));
    const text = await wire.untilClosed();
    assert.equal(text.match(/HTTP\/1\.1 103/g)!.length, 16);
    assert.match(text, /HTTP\/1\.1 502/);
    assert.deepEqual(await router.counted(1), { requests: 1, errors: 1, clientErrors: 0 });
    const sent = informer.sent;
    await ask(router.port());
    assert.ok(sent < 100_000, `${sent}`);
  });

  test('and so it is over HTTP/2', async () => {
    const router = await serveTls(() => {});
    const informer = await startInformer(Number.POSITIVE_INFINITY);
    await router.serve(share(1, 100, informer));
    const { ask: askStream, open } = await openSession(router.tls);
    if (plane === 'haproxy') {
      const stream = open();
      await once(stream, 'headers');
      stream.close(constants.NGHTTP2_CANCEL);
      await until('the instance is let go', () => informer.isLetGo);
      return;
    }
    const { status, informed } = await askStream();
    assert.deepEqual([status, informed.length], [502, 16]);
  });
}

function claims() {
  test('twins with underscores of the headers that the proxy sets or removes do not reach the instance', async () => {
    const seen: string[] = [];
    const instance = await startInstance((request, response) => {
      seen.push(...request.rawHeaders.filter((_, i) => i % 2 === 0));
      response.end();
    });
    const router = await serveInstance(instance);
    const lines = ['X_Forwarded_For: 6.6.6.6', 'x-forwarded_proto: https', 'X_REAL_IP: 6.6.6.6', 'Content_Length: 5'];
    const wire = new Wire(router.port());
    wire.write(
      getRequest('/', `${lines.join('\r\n')}\r\nTransfer_Encoding: chunked\r\nMy_Own: 1\r\nConnection: close\r\n`),
    );
    assert.equal(statusOf(await wire.untilClosed()), 200);
    assert.deepEqual(
      seen.filter((name) => name.includes('_')).map((name) => name.toLowerCase()),
      ['my_own'],
    );
  });
}

function connections() {
  test('beyond the limit of one address, new ones are closed and others go on', async () => {
    const router = await startRouter({ connectionsPerAddress: 3 });
    await router.serve(share(1, 100, await named('app')));
    const three = Array.from({ length: 3 }, () => new Wire(router.port()));
    for (const wire of three) wire.write(getRequest());
    for (const wire of three) await wire.until('an answer', () => wire.text.endsWith('app'));
    const fourth = new Wire(router.port());
    assert.equal(await fourth.untilClosed(), '');
    three[0]!.socket.destroy();
    await until('there is room again', async () => {
      const wire = new Wire(router.port());
      wire.write(getRequest('/', 'Connection: close\r\n'));
      return (await wire.untilClosed()).endsWith('app');
    });
    for (const wire of three) wire.socket.destroy();
  });

  test('visitors who do not read are disconnected, and what waits for them stays small', async () => {
    let sent = 0;
    const closed = new Set<object>();
    const chunk = Buffer.alloc(64 * 1024);
    const instance = await startInstance((_request, response) => {
      const more = () => {
        while (!response.destroyed) {
          sent += chunk.length;
          if (!response.write(chunk)) return;
        }
      };
      response.on('drain', more);
      response.on('close', () => closed.add(response));
      more();
    });
    const router = await serveInstance(instance, { idleMs: 500, answerHeadMs: 500, retryMs: 0 });
    // What a busy machine has not collected yet waits for nobody.
    const heldBytes = () => {
      collectGarbage();
      const { heapUsed, external } = process.memoryUsage();
      return heapUsed + external;
    };
    const before = heldBytes();
    const visitors = Array.from({ length: 50 }, () => new Wire(router.port()));
    for (const { socket } of visitors) socket.pause();
    for (const visitor of visitors) visitor.write(getRequest());
    let most = 0;
    await until('all are disconnected', () => {
      most = Math.max(most, heldBytes() - before);
      return closed.size === visitors.length;
    });
    assert.ok(most < 100e6, `${most} bytes of memory for ${sent} bytes sent`);
    for (const { socket } of visitors) socket.destroy();
  });

  test('an IPv6 network counts as one address', () => {
    assert.equal(networkOf('2001:db8::1'), networkOf('2001:db8::ffff:2'));
    assert.notEqual(networkOf('2001:db8::1'), networkOf('2001:db8:0:1::1'));
    assert.equal(networkOf('192.0.2.1'), networkOf('::ffff:192.0.2.1'));
    assert.equal(networkOf('::ffff:c000:201'), networkOf('192.0.2.1'));
    assert.notEqual(networkOf('::ffff:192.0.2.1'), networkOf('::ffff:192.0.2.2'));
  });
}

describe('1xx responses', information);
describe('claims', claims);
describe('connections', connections);
