// Requests against a small real server that limits, fails, hangs, hangs up and redirects as it is told.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, afterEach, before, describe, test } from 'node:test';
import { createClient, SluiceError } from './index.ts';
import type { ClientOptions } from './request.ts';

type Behaviour = (request: IncomingMessage, response: ServerResponse) => void;
const requests: { method: string; path: string; key: string | undefined; at: number }[] = [];
let script: Behaviour[] = [];
const server = createServer((request, response) => {
  const key = request.headers['idempotency-key'] as string | undefined;
  requests.push({ method: request.method!, path: request.url!, key, at: Date.now() });
  request.resume();
  request.on('end', () => (script.shift() ?? good)(request, response));
});

const project = { id: 'prj_1', name: 'Shop' };
const json =
  (status: number, body: unknown, headers: Record<string, string> = {}): Behaviour =>
  (_, response) =>
    response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body));
const failure = (status: number, code: string, headers?: Record<string, string>) =>
  json(status, { error: { code, message: `It is ${code}.`, status, request_id: 'req_1', docs: 'http://d' } }, headers);
const good = json(200, project, { etag: '"3"' });
const cut: Behaviour = (request) => request.socket.destroy();
const silent: Behaviour = () => undefined;
const html: Behaviour = (_, response) =>
  response.writeHead(502, { 'content-type': 'text/html' }).end(`<html>${'x'.repeat(500)}`);

let url: string;
before(async () => {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
after(() => {
  server.close();
  server.closeAllConnections();
});
afterEach(() => {
  requests.length = 0;
  script = [];
});
const client = (options: Partial<ClientOptions> = {}) => createClient({ url, token: 'slc_secret', ...options });

async function failsWith(promise: Promise<unknown>): Promise<SluiceError> {
  const error = await promise.then(
    () => assert.fail('it did not fail'),
    (reason) => reason,
  );
  assert.ok(error instanceof SluiceError, String(error));
  return error;
}

describe('trying again', () => {
  test('429 is waited out as long as it says', async () => {
    script = [failure(429, 'rate_limited', { 'retry-after': '1' })];
    assert.deepEqual(await client().projects.get('prj_1'), project);
    assert.equal(requests.length, 2);
    assert.ok(requests[1]!.at - requests[0]!.at >= 990);
  });

  test('503 without a time, then a proxy’s page, then a cut connection: the fourth try counts', async () => {
    script = [failure(503, 'shutting_down'), html, cut];
    assert.deepEqual(await client().projects.get('prj_1'), project);
    assert.equal(requests.length, 4);
  });

  test('a POST keeps its key from try to try; another call has another', async () => {
    script = [cut, failure(409, 'idempotency_in_flight', { 'retry-after': '0' }), json(201, project)];
    await client().projects.create({ name: 'Shop' });
    await client().projects.create({ name: 'Shop' });
    const keys = requests.map(({ key }) => key);
    assert.equal(keys.length, 4);
    assert.equal(new Set(keys.slice(0, 3)).size, 1);
    assert.notEqual(keys[3], keys[0]);
    await client().projects.create({ name: 'Shop' }, { idempotencyKey: 'mine' });
    assert.equal(requests[4]!.key, 'mine');
  });

  test('a PATCH whose answer was lost is not repeated, unless it names the version', async () => {
    script = [cut];
    assert.equal((await failsWith(client().projects.update('prj_1', { name: 'S' }))).code, 'network');
    script = [cut];
    await client().projects.update('prj_1', { name: 'S' }, { ifMatch: '"3"' });
    assert.equal(requests.length, 3);
  });

  test('a DELETE that finds nothing after its answer was lost has worked', async () => {
    script = [cut, failure(404, 'project_not_found')];
    assert.equal(await client().projects.delete('prj_1', { ifMatch: '"3"' }), undefined);
    script = [failure(404, 'project_not_found')];
    assert.equal((await failsWith(client().projects.delete('prj_1'))).code, 'project_not_found');
  });

  test('not more often than maxRetries, and not after what will not change', async () => {
    script = [html, html, html];
    assert.equal((await failsWith(client({ maxRetries: 1 }).projects.get('x'))).status, 502);
    assert.equal(requests.length, 2);
    script = [failure(404, 'project_not_found')];
    await failsWith(client().projects.get('x'));
    assert.equal(requests.length, 3);
  });

  test('a Retry-After beyond what is waited for is told at once', async () => {
    script = [failure(429, 'rate_limited', { 'retry-after': '61' })];
    const error = await failsWith(client().projects.get('x'));
    assert.equal(error.retryAfterS, 61);
    assert.equal(requests.length, 1);
  });

  test('calling off ends it, also between two tries', async () => {
    const controller = new AbortController();
    script = [failure(503, 'shutting_down', { 'retry-after': '30' })];
    const call = failsWith(client().projects.get('x', { signal: controller.signal }));
    server.once('request', (_, response) => response.on('finish', () => setImmediate(() => controller.abort())));
    assert.equal((await call).code, 'aborted');
    assert.equal((await failsWith(client().projects.get('x', { signal: controller.signal }))).code, 'aborted');
    assert.equal(requests.length, 1);
  });
});

describe('failing', () => {
  test('an answer of the API brings all it says', async () => {
    const details = [{ path: 'body.name', message: 'must not be empty' }];
    script = [
      json(
        400,
        {
          error: {
            code: 'invalid_request',
            message: 'Wrong.',
            status: 400,
            request_id: 'req_a',
            docs: 'http://d',
            details,
          },
        },
        { 'x-request-id': 'req_a' },
      ),
    ];
    const {
      code,
      message,
      status,
      requestId,
      docs,
      retryAfterS,
      details: told,
    } = await failsWith(client().token.get());
    assert.deepEqual(
      { code, message, status, requestId, docs, retryAfterS },
      {
        code: 'invalid_request',
        message: 'Wrong.',
        status: 400,
        requestId: 'req_a',
        docs: 'http://d',
        retryAfterS: null,
      },
    );
    assert.deepEqual(told, details);
  });

  test('somebody else’s page is an unexpected answer, of which the beginning is kept', async () => {
    script = [(_, response) => response.writeHead(200, { 'content-type': 'text/html' }).end(`<p>${'x'.repeat(500)}`)];
    const error = await failsWith(client().projects.get('x'));
    assert.equal(error.code, 'unexpected_answer');
    assert.equal(error.status, 200);
    assert.match(error.message, /text\/html/);
    assert.equal(error.message.match(/x{10,}/)![0].length, 197);
  });

  test('a redirect is not followed: a POST would become a GET', async () => {
    script = [(_, response) => response.writeHead(301, { location: 'https://new.example/v1/projects' }).end()];
    const error = await failsWith(client().projects.create({ name: 'S' }));
    assert.equal(error.code, 'unexpected_answer');
    assert.match(error.message, /https:\/\/new\.example/);
    assert.equal(requests.length, 1);
  });

  test('no answer in time; nobody there', async () => {
    script = [silent];
    const late = await failsWith(client({ timeoutMs: 100, maxRetries: 0 }).projects.get('x'));
    assert.deepEqual([late.code, late.status], ['timeout', 0]);
    const nobody = await failsWith(client({ url: 'http://127.0.0.1:1', maxRetries: 0 }).projects.get('x'));
    assert.equal(nobody.code, 'network');
    assert.match(nobody.message, /ECONNREFUSED|bad port/);
  });

  test('no error names the token, and one that is none is refused first', async () => {
    assert.throws(
      () => client({ token: 'slc_se\ncret' }),
      (error: Error) =>
        error instanceof TypeError && !error.message.includes('cret\n') && !/se.cret/s.test(error.message),
    );
    const error = await failsWith(client({ url: 'http://127.0.0.1:1', maxRetries: 0 }).projects.get('x'));
    assert.doesNotMatch(JSON.stringify(error) + error.stack, /slc_secret/);
  });
});

test('onResponse sees the ETag of the answer that counted; what it throws is not tried again', async () => {
  script = [html];
  let etag: string | null = null;
  const onResponse = ({ headers }: { headers: Headers }) => {
    etag = headers.get('etag');
  };
  await client().projects.get('prj_1', { onResponse });
  assert.equal(etag, '"3"');
  const thrown = client().projects.get('prj_1', {
    onResponse() {
      throw new RangeError('mine');
    },
  });
  await assert.rejects(thrown, RangeError);
  assert.equal(requests.length, 3);
});

test('the address may end in a slash or in /v1, and only http will do', async () => {
  for (const ending of ['', '/', '/v1', '/v1/']) await client({ url: url + ending }).projects.get('p');
  assert.deepEqual(new Set(requests.map(({ path }) => path)), new Set(['/v1/projects/p']));
  assert.throws(() => client({ url: 'ftp://x' }), TypeError);
  assert.throws(() => client({ url: 'nonsense' }), TypeError);
});
