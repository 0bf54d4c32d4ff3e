import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { type TestContext, test } from 'node:test';
import { type DockerApi, DockerError, openDockerApi } from './docker-api.ts';

type Answer = (request: IncomingMessage, response: ServerResponse) => void;

async function withEngine(t: TestContext, answer: Answer): Promise<DockerApi> {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-docker-api-'));
  const socketPath = join(folder, 'docker.sock');
  const server = createServer(answer).listen(socketPath);
  await once(server, 'listening');
  const docker = await openDockerApi({ socketPath });
  t.after(() => {
    docker.close();
    server.close().closeAllConnections();
    rmSync(folder, { recursive: true });
  });
  return docker;
}

test('a request has its query, body and login as Docker wants them', async (t) => {
  const asked: object[] = [];
  const docker = await withEngine(t, async ({ method, url, headers }, response) => {
    asked.push({
      method,
      url: decodeURIComponent(url!),
      type: headers['content-type'],
      auth: headers['x-registry-auth'],
    });
    response.end(JSON.stringify({ Id: 'c1' }));
  });
  const query = { filters: { label: ['a=b'] }, force: true, left: undefined, t: 3 };
  assert.deepEqual(await docker.request('GET', '/containers/json', { query }), { Id: 'c1' });
  await docker.request('POST', '/containers/create', { body: { Image: 'shop' } });
  await docker.request('POST', '/build', { body: Readable.from([Buffer.from('tar')]), login: { password: '>>>?' } });
  const type = undefined;
  assert.deepEqual(asked, [
    { method: 'GET', url: '/containers/json?filters={"label":["a=b"]}&force=true&t=3', type, auth: undefined },
    { method: 'POST', url: '/containers/create', type: 'application/json', auth: undefined },
    { method: 'POST', url: '/build', type: 'application/x-tar', auth: 'eyJwYXNzd29yZCI6Ij4-Pj8ifQ==' },
  ]);
});

test('an error is that of the engine, or a quotation of whatever else answered', async (t) => {
  const docker = await withEngine(t, ({ url }, response) => {
    response.statusCode = 409;
    if (url === '/engine') response.end(JSON.stringify({ message: 'the name is taken\n' }));
    else response.end(url === '/proxy' ? `<h1>Conflict</h1>${'x'.repeat(1000)}` : '');
  });
  const messageOf = (path: string) =>
    docker.request('GET', path).catch((error) => error instanceof DockerError && [error.statusCode, error.message]);
  assert.deepEqual(await messageOf('/engine'), [409, 'the name is taken']);
  assert.deepEqual(await messageOf('/proxy'), [409, `<h1>Conflict</h1>${'x'.repeat(483)}`]);
  assert.deepEqual(await messageOf('/empty'), [409, 'Conflict']);
});

test('an answer without a body is null; one that is no JSON, is cut off or aborted fails with a code', async (t) => {
  const docker = await withEngine(t, ({ url }, response) => {
    if (url === '/nothing') response.writeHead(204).end();
    else if (url === '/page') response.end('<html>');
    else response.write('{"half":');
    if (url === '/cut') setImmediate(() => response.destroy());
  });
  const codeOf = (path: string, signal?: AbortSignal) =>
    docker.request('GET', path, { ...(signal && { signal }) }).catch((error) => error.code);
  assert.equal(await codeOf('/nothing'), null);
  assert.equal(await codeOf('/page'), 'EBADANSWER');
  assert.equal(await codeOf('/cut'), 'ECONNRESET');
  const aborting = new AbortController();
  const stream = await docker.stream('GET', '/endless', { signal: aborting.signal });
  const end = stream.toArray().catch((error) => error.code);
  aborting.abort();
  assert.match(String(await end), /ABORT_ERR|ECONNRESET/);
});

test('closing cuts off what is under way', async (t) => {
  const docker = await withEngine(t, (_request, response) => response.flushHeaders());
  const stream = await docker.stream('GET', '/events');
  docker.close();
  await assert.rejects(stream.toArray());
});
