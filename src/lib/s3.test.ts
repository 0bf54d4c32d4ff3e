import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { until } from '../../test/helpers/wait.ts';
import { S3 } from './s3.ts';
import { S3Error } from './s3-error.ts';

setFlagsFromString('--expose-gc');
const collectGarbage: () => void = runInNewContext('gc');

/** A store that gives these answers one after the other, and then none. */
async function startStore(statuses: number[]) {
  const calls: string[] = [];
  const server = createServer((request, response) => {
    calls.push(`${request.method} ${request.url}`);
    const status = statuses.shift();
    if (status !== undefined) response.writeHead(status).end();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const store = { bucket: 'b', prefix: '', region: 'us-east-1', endpoint, accessKeyId: 'id', secretAccessKey: 'key' };
  const stop = () => {
    server.closeAllConnections();
    server.close();
  };
  return { calls, store, [Symbol.dispose]: stop };
}

test('a store that never answers is given up in time, whatever garbage is collected meanwhile', {
  timeout: 30_000,
}, async () => {
  using silent = await startStore([]);
  const s3 = new S3(silent.store, { timeoutMs: 2000 });
  const givenUp = assert.rejects(s3.read('key'), { name: 'TimeoutError' });
  // Not earlier: to collect the garbage of a large process again and again would hold up the request itself.
  await until('the request', () => silent.calls.length === 1);
  const collecting = setInterval(collectGarbage, 100);
  await givenUp.finally(() => clearInterval(collecting));
  assert.equal(silent.calls.length, 1);
});

test('a store in trouble for a moment is asked again, five times in all', async () => {
  using busy = await startStore([503, 429, 200, 500, 500, 500, 500, 500]);
  const s3 = new S3(busy.store, { timeoutMs: 30_000 });
  assert.deepEqual(await s3.read('first'), Buffer.alloc(0));
  await assert.rejects(s3.read('second'), S3Error);
  assert.deepEqual(busy.calls, [...Array(3).fill('GET /b/first'), ...Array(5).fill('GET /b/second')]);
});

test('a connection that is reset is tried again', async () => {
  let calls = 0;
  const server = createServer((request, response) => {
    if (++calls < 3) request.socket.resetAndDestroy();
    else response.end('whole');
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const store = { bucket: 'b', prefix: '', region: 'us-east-1', endpoint, accessKeyId: 'id', secretAccessKey: 'key' };
  try {
    assert.equal(String(await new S3(store).read('key')), 'whole');
    assert.equal(calls, 3);
  } finally {
    server.closeAllConnections();
    server.close();
  }
});

test('a damaged file in parts is never joined, and its parts are given up', async () => {
  const calls: string[] = [];
  const server = createServer((request, response) => {
    calls.push(`${request.method} ${request.url}`);
    request.resume().on('end', () => response.end('<UploadId>u</UploadId>'));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const store = { bucket: 'b', prefix: '', region: 'us-east-1', endpoint, accessKeyId: 'id', secretAccessKey: 'key' };
  try {
    const body = new Blob([new Uint8Array(65 * 1024 * 1024)]);
    const about = { type: 'video/mp4', cacheControl: '', sha256: 'f'.repeat(64) };
    await assert.rejects(new S3(store).put('film.mp4', body, about), /film\.mp4: the file is damaged: its digest/);
    assert.deepEqual(calls, [
      'POST /b/film.mp4?uploads=',
      'PUT /b/film.mp4?partNumber=1&uploadId=u',
      'DELETE /b/film.mp4?uploadId=u',
    ]);
  } finally {
    server.closeAllConnections();
    server.close();
  }
});
