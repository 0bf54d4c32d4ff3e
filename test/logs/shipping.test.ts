// Lines on their way to others: real receivers on loopback, one that goes away, one that never answers.
import assert from 'node:assert/strict';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { createServer as createHttp } from 'node:http';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { json } from 'node:stream/consumers';
import { after, test } from 'node:test';
import { createServer as createTls, getCACertificates, setDefaultCACertificates } from 'node:tls';
import { createLog } from '../../src/lib/log.ts';
import { encodeLine, encodeLines, timeText } from '../../src/lib/log-lines.ts';
import { S3 } from '../../src/lib/s3.ts';
import { Shipper, shippedLines } from '../../src/logs/log-shipper.ts';
import { otlpBody, otlpReceiver } from '../../src/logs/otlp-receiver.ts';
import { syslogMessage, syslogReceiver } from '../../src/logs/syslog-receiver.ts';
import { startApp } from '../helpers/app.ts';
import { ca, issue } from '../helpers/router-certificates.ts';
import { startS3 } from '../helpers/s3.ts';
import { Shop } from '../helpers/shop.ts';
import { startTcpProxy } from '../helpers/tcp-proxy.ts';
import { until } from '../helpers/wait.ts';

const cleanUp: (() => unknown)[] = [];
after(async () => {
  for (const step of cleanUp.reverse()) await step();
});

const log = createLog({ level: 'silent', format: 'json' });
const instance = { id: 'ins_1', key: { projectId: 'prj_1', environment: 'production' }, revision: 7 };
const at = Date.UTC(2026, 10, 15);
const line = (text: string) => ({ time: timeText(at, 123_456), stream: 'stderr' as const, text });

/** Keeps what came, and takes off the lengths in front. */
async function startSyslog(tls?: { certificate: string; key: string }) {
  let text = '';
  const sockets = new Set<Socket>();
  const take = (socket: Socket) => {
    sockets.add(
      socket.on('data', (chunk) => {
        text += chunk;
      }),
    );
    socket.on('error', () => {});
  };
  const server = tls ? createTls({ cert: tls.certificate, key: tls.key }, take) : createServer(take);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const cut = () => {
    for (const socket of sockets) socket.destroy();
  };
  cleanUp.push(() => {
    cut();
    server.close();
  });
  const messages = () => {
    const found: string[] = [];
    for (let rest = Buffer.from(text); rest.length > 0; ) {
      const [head = '', length = ''] = /^(\d+) /.exec(rest.toString('latin1')) ?? [];
      found.push(rest.toString('utf8', head.length, head.length + Number(length)));
      rest = rest.subarray(head.length + Number(length));
    }
    return found;
  };
  return { port: (server.address() as AddressInfo).port, messages, cut };
}

test('a message of RFC 5424: stderr is no error by itself, a level in JSON is', () => {
  const [plain, json] = [...shippedLines(instance, encodeLines([line('slow "disk" ]'), line('{"level":"error"}')]))];
  assert.equal(
    syslogMessage(plain!),
    '<14>1 2026-11-15T00:00:00.000123Z prj_1 production ins_1 stderr ' +
      '[sluice@32473 project="prj_1" environment="production" revision="r7" instance="ins_1"] slow "disk" ]',
  );
  assert.match(syslogMessage(json!), /^<11>1 /);
});

test('a request of OTLP: one resource for each instance, times in nanoseconds', () => {
  const lines = [...shippedLines(instance, encodeLine(line('{"level":"warn"}')))];
  const { resourceLogs } = otlpBody(lines);
  assert.equal(resourceLogs.length, 1);
  assert.deepEqual(resourceLogs[0]!.scopeLogs[0]!.logRecords[0], {
    timeUnixNano: `${at}123456`,
    severityNumber: 13,
    severityText: 'WARN',
    body: { stringValue: '{"level":"warn"}' },
    attributes: [{ key: 'log.iostream', value: { stringValue: 'stderr' } }],
  });
});

test('what instances print arrives over TCP, by OTLP and in a bucket', async () => {
  const syslog = await startSyslog();
  const bodies: unknown[] = [];
  const collector = createHttp(async (request, response) => {
    assert.equal(request.headers.authorization, 'Bearer a b');
    bodies.push(await json(request));
    response.end('{}');
  }).listen(0, '127.0.0.1');
  await once(collector, 'listening');
  cleanUp.push(() => collector.close());
  const s3 = await startS3('logs');
  cleanUp.push(s3.stop);
  const app = await startApp({
    env: {
      ...s3.env,
      SLUICE_LOGS_S3: 's3://logs/kept',
      SLUICE_LOGS_SYSLOG: `tcp://127.0.0.1:${syslog.port}`,
      SLUICE_LOGS_OTLP: `http://127.0.0.1:${(collector.address() as AddressInfo).port}/v1/logs`,
      SLUICE_LOGS_OTLP_HEADERS: 'authorization=Bearer%20a%20b',
    },
  });
  cleanUp.push(app.stop);
  const shop = await Shop.open(app.url);
  await shop.released('shop:1');
  await until('syslog', () => syslog.messages().some((message) => /of shop:1 started$/.test(message)));
  await until('OTLP', () => JSON.stringify(bodies).includes('of shop:1 started'));
  const read = () => shop.api('GET', '/environments/production/logs?search=started');
  const entry = await until('the bucket', async () => (await read()).body.data[0]);
  assert.match(entry.text, /of shop:1 started$/);
  const objects = await new S3(s3.storeAt()).list(`kept/${shop.project}/production/`);
  assert.ok(objects.length > 0, 'its segment is an object');
  const metrics = await (await fetch(`${app.url}/metrics`)).text();
  assert.match(metrics, /sluice_logs_shipped_lines_total\{receiver="syslog"\} [1-9]/);
  assert.match(metrics, /sluice_logs_dropped_lines_total\{receiver="otlp"\} 0/);
});

test('while the bucket is silent a read says so, and nothing that is printed is lost', async () => {
  const s3 = await startS3('logs');
  cleanUp.push(s3.stop);
  const way = await startTcpProxy(Number(new URL(s3.endpoint).port));
  cleanUp.push(way.close);
  const env = { ...s3.env, AWS_ENDPOINT_URL: `http://127.0.0.1:${way.port}`, SLUICE_LOGS_S3: 's3://logs' };
  const app = await startApp({ env });
  cleanUp.push(app.stop);
  const shop = await Shop.open(app.url);
  await shop.released('shop:1');
  const read = (search: string) => shop.api('GET', `/environments/production/logs?search=${search}`);
  await until('the first line', async () => (await read('shop:1')).body.data?.[0]);
  way.silence();
  const { status, headers, body } = await read('shop:1');
  assert.deepEqual([status, body.error.code, headers.get('retry-after')], [503, 'logs_unavailable', '5']);
  await shop.released('shop:2');
  way.open();
  await until('what was printed meanwhile', async () => (await read('shop:2')).body.data?.[0], 60_000);
  assert.equal((await read('shop:1')).status, 200);
});

test('a receiver that cuts the connection gets what comes after it', async () => {
  const syslog = await startSyslog();
  const receiver = syslogReceiver({ transport: 'tcp', host: '127.0.0.1', port: syslog.port });
  const shipper = new Shipper(receiver, log);
  cleanUp.push(() => shipper.stop());
  shipper.add('acc_1', instance, encodeLine(line('before')));
  await until('the first', () => syslog.messages().length === 1);
  syslog.cut();
  await until('a line on the next connection', () => {
    shipper.add('acc_1', instance, encodeLine(line('after')));
    return syslog.messages().some((message) => message.endsWith(' after'));
  });
});

test('over TLS, to a receiver whose certificate is trusted, and to no other', async () => {
  setDefaultCACertificates([...getCACertificates('default'), ca]);
  const trusted = await startSyslog(await issue('localhost'));
  const other = await startSyslog(await issue('other.test'));
  const send = async (port: number) => {
    const receiver = syslogReceiver({ transport: 'tls', host: 'localhost', port });
    cleanUp.push(() => receiver.close());
    await receiver.send([...shippedLines(instance, encodeLine(line('sealed')))]);
  };
  await send(trusted.port);
  await until('the message', () => trusted.messages()[0]?.endsWith(' sealed'));
  await assert.rejects(send(other.port), { code: 'ERR_TLS_CERT_ALTNAME_INVALID' });
  assert.deepEqual(other.messages(), []);
});

test('datagrams', async () => {
  const socket = createSocket('udp4').bind(0, '127.0.0.1');
  await once(socket, 'listening');
  cleanUp.push(() => socket.close());
  const receiver = syslogReceiver({ transport: 'udp', host: '127.0.0.1', port: socket.address().port });
  const shipper = new Shipper(receiver, log);
  const arrived = once(socket, 'message');
  shipper.add('acc_1', instance, encodeLine(line('by datagram')));
  assert.match(String((await arrived)[0]), /^<14>1 .* by datagram$/);
  shipper.stop();
});

test('while a receiver takes nothing, memory is bounded and what finds no room is counted', () => {
  const receiver = { name: 'otlp' as const, send: () => new Promise<void>(() => {}), close: () => {} };
  const shipper = new Shipper(receiver, log);
  const chunk = encodeLines(Array.from({ length: 1000 }, () => line('x'.repeat(1000))));
  for (let n = 0; n < 20; n++) shipper.add('acc_1', instance, chunk);
  assert.equal(shipper.dropped, 18_000, `of 20,000 lines, 1 MB each thousand, 2 MB of a project wait`);
  const other = { ...instance, key: { ...instance.key, projectId: 'prj_2' } };
  shipper.add('acc_2', other, encodeLine(line('of another account')));
  assert.equal(shipper.dropped, 18_000, 'which has room of its own');
  shipper.stop();
});

test('what a receiver refuses is found by halves and dropped; all else arrives, of this project and of others', async () => {
  const taken: string[] = [];
  const server = createHttp(async (request, response) => {
    const text = JSON.stringify(await json(request));
    const isRefused = text.includes('poison') || text.length > 100_000;
    if (!isRefused) taken.push(...(text.match(/(?<="stringValue":")line \d+/g) ?? []));
    response.writeHead(isRefused ? 413 : 200).end();
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  cleanUp.push(() => server.close());
  const { port } = server.address() as AddressInfo;
  const shipper = new Shipper(otlpReceiver({ url: `http://127.0.0.1:${port}/v1/logs`, headers: {} }), log);
  cleanUp.push(() => shipper.stop());
  const lines = Array.from({ length: 400 }, (_, n) =>
    line(n === 77 || n === 300 ? 'poison' : `line ${n} ${'x'.repeat(300)}`),
  );
  shipper.add('acc_1', instance, encodeLines(lines));
  const other = { ...instance, id: 'ins_2', key: { ...instance.key, projectId: 'prj_2' } };
  shipper.add('acc_2', other, encodeLine(line('line 1000')));
  await until('all of it', () => shipper.shipped + shipper.dropped === 401);
  assert.deepEqual([shipper.shipped, shipper.dropped, new Set(taken).size], [399, 2, 399]);
});
