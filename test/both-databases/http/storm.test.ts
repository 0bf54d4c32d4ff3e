// Bad input for every route of the OpenAPI document: never a fault of the service, never a hang, always the envelope.
import assert from 'node:assert/strict';
import http from 'node:http';
import { after, describe, test } from 'node:test';
import fc from 'fast-check';
import { Compile } from 'typebox/compile';
import { errorCatalogue } from '../../../src/contract/errors.ts';
import { adminToken, startApp } from '../../helpers/app.ts';
import { type Fixture, type Operation, requestsOf, type StormRequest } from '../../helpers/bad-input.ts';
import type { Schema } from '../../helpers/schema-values.ts';

/** Usually two are enough, and in one route of some hundred thirty are needed. */
const maxRounds = 200;
/** Raise it to look for rare faults: STORM_RUNS=5000 npm test -- test/both-databases/http/storm.test.ts */
const runsPerRoute = Number(process.env.STORM_RUNS ?? 6);
/** For what never comes, on a busy machine too. */
const answerWithinMs = 60_000;

interface Answer {
  status: number;
  headers: http.IncomingHttpHeaders;
  text: string;
}

interface DocumentedOperation {
  operationId: string;
  parameters: Operation['parameters'];
  requestBody?: { content: { 'application/json': { schema: Schema } } };
  responses: Record<string, { content?: { 'application/json'?: { schema: Schema } } }>;
  'x-error-codes': Record<string, string[]>;
}

interface Document {
  paths: Record<string, Record<string, DocumentedOperation>>;
}

/** The document with every reference replaced by what it points to. */
function resolved(document: object): Document {
  const at = (pointer: string) =>
    pointer
      .slice(2)
      .split('/')
      .reduce<unknown>((value, name) => (value as Record<string, unknown>)[name], document);
  const walk = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(walk);
    if (typeof value !== 'object' || value === null) return value;
    if ('$ref' in value) return walk(at(value.$ref as string));
    return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, walk(item)]));
  };
  return walk(document) as Document;
}

function send(url: string, agent: http.Agent, { method, path, headers, body }: StormRequest): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const { hostname, port } = new URL(url);
    const length = body ? { 'content-length': String(body.length) } : {};
    const request = http.request({ hostname, port, method, path, headers: { ...headers, ...length }, agent });
    const timer = setTimeout(() => request.destroy(new Error(`no answer within ${answerWithinMs} ms`)), answerWithinMs);
    request.on('close', () => clearTimeout(timer));
    request.on('error', reject);
    request.on('response', (response) => {
      // A stream has no end: that it begins is its answer.
      if (response.headers['content-type']?.startsWith('text/event-stream')) {
        resolve({ status: response.statusCode!, headers: response.headers, text: '' });
        request.destroy();
        return;
      }
      const chunks: Buffer[] = [];
      response.on('data', (chunk) => chunks.push(chunk));
      response.on('error', reject);
      response.on('end', () => {
        resolve({ status: response.statusCode!, headers: response.headers, text: Buffer.concat(chunks).toString() });
      });
    });
    request.end(body ?? undefined);
  });
}

const leaks = [
  /\n\s+at /,
  /node:internal|node_modules|\.ts\b|\.js\b/,
  /\b(?:select|insert into|update|delete from)\b[^"]*\b(?:from|values|set|where)\b/i,
  /SQLITE|syntax error|violates|constraint/i,
  /\/(?:work|tmp|home|usr)\//,
];

function assertWellFormed(value: unknown): void {
  if (typeof value === 'string') assert.ok(value.isWellFormed(), 'half a surrogate pair in an answer');
  if (typeof value === 'object' && value !== null) for (const item of Object.values(value)) assertWellFormed(item);
}

// The clock runs fast, so that no request is rate-limited.
let nowMs = Date.now();
let sent = 0;
const agent = new http.Agent({ keepAlive: true, maxSockets: 4 });
const service = await startApp({ clock: { now: () => nowMs } });
const document = resolved((await service.call('GET', '/v1/openapi.json')).body);

describe('a storm of bad input', () => {
  after(async () => {
    agent.destroy();
    await service.stop();
  });

  function ask(request: StormRequest): Promise<Answer> {
    if (++sent % 20 === 0) nowMs += 120_000;
    return send(service.url, agent, request);
  }

  async function make(path: string, body: object): Promise<Record<string, string>> {
    const headers = { authorization: `Bearer ${adminToken}`, 'content-type': 'application/json' };
    const { status, text } = await ask({ method: 'POST', path, headers, body: Buffer.from(JSON.stringify(body)) });
    assert.equal(status, 201, text);
    return JSON.parse(text);
  }

  /** New resources for each route that writes: its requests may delete them. */
  async function makeFixture(count: number): Promise<Fixture> {
    const params: Record<string, string[]> = { id: [], name: ['production'], tok: [], rul: [] };
    for (let n = 0; n < count; n++) {
      const project = (await make('/v1/projects', { name: `Shop ${n}` })).id!;
      params.id!.push(project);
      const rule = { environment: 'production', name: 'storm', metric: 'external' };
      params.rul!.push((await make(`/v1/projects/${project}/alert-rules`, rule)).id!);
      params.tok!.push((await make('/v1/tokens', { name: 'other', scopes: ['projects:read'] })).id!);
    }
    const { token } = await make('/v1/tokens', { name: 'storm', scopes: ['*'] });
    const headers = { authorization: `Bearer ${token}` };
    const { text } = await ask({ method: 'GET', path: '/v1/projects?limit=1', headers, body: null });
    const cursor = JSON.parse(text).page.next as string;
    const foreign = `${cursor.slice(0, 5)}${cursor[5] === 'A' ? 'B' : 'A'}${cursor.slice(6)}`;
    return { token: token!, params, cursors: [cursor, foreign, cursor.slice(0, -1), `${cursor}A`] };
  }

  function assertEveryHeader({ headers }: Answer): void {
    assert.match(headers['x-request-id'] as string, /^req_[0-9a-z]{26}$/);
    for (const name of ['limit', 'remaining', 'reset']) {
      assert.match(String(headers[`x-ratelimit-${name}`]), /^\d+$/, `X-RateLimit-${name}`);
    }
  }

  function assertEnvelope(answer: Answer): string {
    const { error, ...rest } = JSON.parse(answer.text);
    assert.deepEqual(rest, {});
    const { details, ...fixed } = error;
    assert.deepEqual(Object.keys(fixed), ['code', 'message', 'status', 'request_id', 'docs']);
    assert.equal(error.status, answer.status);
    assert.equal(errorCatalogue[error.code as keyof typeof errorCatalogue]?.status, answer.status, error.code);
    assert.equal(error.request_id, answer.headers['x-request-id']);
    assert.equal(error.docs, `${service.url}/docs/errors#${error.code}`);
    assert.match(answer.headers['content-type']!, /^application\/json/);
    assertWellFormed(error);
    for (const leak of leaks) assert.doesNotMatch(answer.text, leak);
    return error.code;
  }

  function assertAnswer(answer: Answer, documented: DocumentedOperation, validators: Map<string, Check>): void {
    assert.ok(answer.status < 500, `${answer.status} ${answer.text}`);
    assert.notEqual(answer.status, 429);
    assertEveryHeader(answer);
    const check = validators.get(String(answer.status));
    if (answer.status >= 400) {
      const code = assertEnvelope(answer);
      if (code === 'route_not_found' || code === 'method_not_allowed') return; // the path was spoilt too
      assert.ok(documented['x-error-codes'][answer.status]?.includes(code), `${code} is not documented`);
    }
    assert.ok(check, `status ${answer.status} is not documented`);
    if (answer.status === 204 || answer.headers['content-type'] !== 'application/json; charset=utf-8')
      assert.equal(answer.text, '');
    else check(JSON.parse(answer.text));
  }

  type Check = (body: unknown) => void;

  function validatorsOf(documented: DocumentedOperation): Map<string, Check> {
    return new Map(
      Object.entries(documented.responses).map(([status, { content }]) => {
        const json = content?.['application/json'];
        if (!json) return [status, () => {}];
        const validator = Compile(json.schema as never);
        const check = (body: unknown) =>
          assert.ok(validator.Check(body), `not as documented: ${JSON.stringify(validator.Errors(body)[0])}`);
        return [status, check];
      }),
    );
  }

  test('every route of the document', async (t) => {
    const unspoilt = await makeFixture(3);
    const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, documented]) => ({ path, method: method.toUpperCase(), documented })),
    );
    assert.ok(operations.length >= 18);
    for (const { path, method, documented } of operations) {
      await t.test(`${method} ${path}`, async () => {
        const fixture = method === 'GET' ? unspoilt : await makeFixture(method === 'DELETE' ? 10 : 3);
        const body = documented.requestBody?.content['application/json'].schema ?? null;
        const { operationId: id, parameters } = documented;
        const validators = validatorsOf(documented);
        let succeeded = 0;
        const property = fc.asyncProperty(
          requestsOf({ id, method, path, parameters, body }, fixture),
          async (request) => {
            const answer = await ask(request);
            assertAnswer(answer, documented, validators);
            if (answer.status < 400) succeeded++;
          },
        );
        // These need a revision that has run; every other route only what its path names.
        const needsRevision = path.endsWith('/rollback') || path.endsWith('/redeploy');
        const possible = !needsRevision && [...path.matchAll(/\{(\w+)\}/g)].every(([, name]) => fixture.params[name!]);
        // A route with many fields may have no valid request among a few hundred: then there are more.
        for (let round = 0; round === 0 || (possible && succeeded === 0 && round < maxRounds); round++) {
          await fc.assert(property, { numRuns: runsPerRoute, interruptAfterTimeLimit: 120_000 });
        }
        if (possible) assert.ok(succeeded > 0, 'no request got through: the storm has only tried the first check');
      });
    }
  });

  test('names that every object inherits are unknown fields and parameters like any other', async () => {
    const unknown = ['__proto__', 'constructor', 'toString', 'hasOwnProperty'];
    const manyFields = Object.fromEntries(Array.from({ length: 500 }, (_, index) => [`field_${index}`, 1]));
    const bodies = [...unknown.map((name) => `{"name":"a","${name}":1}`), JSON.stringify({ name: 'a', ...manyFields })];
    for (const text of bodies) {
      const { status, body } = await service.call('POST', '/v1/projects', { body: text });
      assert.equal(status, 400, text);
      const [name] = Object.keys(JSON.parse(text)).slice(1);
      assert.deepEqual(body.error.details[0], { path: `body.${name}`, message: 'is not a known field' });
    }
    for (const name of unknown) {
      const { status, body } = await service.call('GET', `/v1/projects?${name}=1`);
      assert.equal(status, 400, name);
      assert.deepEqual(body.error.details, [{ path: `query.${name}`, message: 'is not a known field' }]);
    }
  });

  test('paths that no route has, with every method', async () => {
    const methods = fc.constantFrom(
      'GET',
      'POST',
      'PUT',
      'PATCH',
      'DELETE',
      'OPTIONS',
      'PROPFIND',
      'QUERY',
      'LINK',
      'TRACE',
    );
    const piece = fc.constantFrom(
      'v1',
      'projects',
      'tokens',
      '',
      '.',
      '..',
      '%2e',
      '%',
      '%00',
      'environments',
      'é',
      '//',
      'x',
    );
    const request = fc.record({ method: methods, pieces: fc.array(piece, { maxLength: 6 }) });
    await fc.assert(
      fc.asyncProperty(request, async ({ method, pieces }) => {
        const path = encodeURI(`/v1/${pieces.join('/')}`).replaceAll('%25', '%');
        const headers = { authorization: `Bearer ${adminToken}` };
        const answer = await ask({ method, path, headers, body: null });
        assert.ok(answer.status < 500 && answer.status !== 429, `${answer.status} ${answer.text}`);
        assertEveryHeader(answer);
        if (answer.status >= 400) assertEnvelope(answer);
      }),
      { numRuns: 400 },
    );
  });

  test('the service still answers', async () => {
    const { status } = await service.call('GET', '/v1/projects');
    assert.equal(status, 200);
  });
});
