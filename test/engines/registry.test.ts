// The registry client against a real registry, with and without a password, and against servers that misbehave in ways a
// real one does not on command.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, describe, test } from 'node:test';
import { EngineError, type EngineFault } from '../../src/engines/engine.ts';
import { createRegistry } from '../../src/engines/registry/registry.ts';
import { dockerMissing, startRegistry, type TestRegistry } from '../helpers/docker.ts';
import { freePort } from '../helpers/free-port.ts';
import { pushList, pushTo } from '../helpers/push.ts';

const isFault = (fault: EngineFault, words: RegExp) => (error: unknown) => {
  assert.ok(error instanceof EngineError, String(error));
  assert.equal(error.fault, fault);
  assert.match(error.message, words);
  return true;
};

const registry = createRegistry({ timeoutMs: 10_000 });
after(() => registry.close());

describe('a real registry', { skip: dockerMissing }, () => {
  let open: TestRegistry;
  let closed: TestRegistry;
  before(async () => {
    open = await startRegistry();
    closed = await startRegistry({ closed: true });
  });
  after(() => Promise.all([open?.stop(), closed?.stop()]));
  const login = () => ({ ...closed.auth!, server: closed.host });

  test('a tag becomes its digest, and a digest itself', async () => {
    const digest = await pushTo(open, 'team/shop', 'v1', {});
    assert.deepEqual(await registry.resolve(`${open.host}/team/shop:v1`, null), { digest });
    assert.deepEqual(await registry.resolve(`${open.host}/team/shop@${digest}`, null), { digest });
  });

  test('a list of platforms has one digest, and what it runs is read from the own platform', async () => {
    const images = [
      { architecture: 'arm64', config: { User: '0' } },
      { architecture: 'amd64', config: { User: '1000:1000', ExposedPorts: { '8080/tcp': {}, '53/udp': {} } } },
    ];
    const digest = await pushList(open, 'multi', 'v1', images);
    const image = `${open.host}/multi:v1`;
    assert.deepEqual(await registry.resolve(image, null), { digest });
    assert.deepEqual(await registry.config(image, digest, null), { user: '1000:1000', ports: [8080] });
  });

  test('what is not there is not found, by name and by tag', async () => {
    await pushTo(open, 'there', 'v1', {});
    for (const image of [`${open.host}/there:v2`, `${open.host}/none:v1`]) {
      await assert.rejects(registry.resolve(image, null), isFault('image_not_found', /has no 127/));
    }
    await assert.rejects(registry.resolve('Not An Image', null), isFault('image_not_found', /not a reference/));
  });

  test('a registry with a password wants the right one', async () => {
    const digest = await pushTo(closed, 'private', 'v1', { config: { User: 'app' } });
    const image = `${closed.host}/private:v1`;
    await assert.rejects(registry.resolve(image, null), isFault('image_denied', /add a login/));
    const wrong = { username: 'sluice', password: 'wrong', server: closed.host };
    await assert.rejects(registry.resolve(image, wrong), isFault('image_denied', /login .* may not pull/));
    assert.deepEqual(await registry.resolve(image, login()), { digest });
    assert.equal((await registry.config(image, digest, login())).user, 'app');
  });

  test('a mirror is asked first, without the login, and may lack the image or be away', async () => {
    const digest = await pushTo(open, 'mirrored', 'v1', {});
    const host = `127.0.0.1:${await freePort()}`;
    const own = await pushTo(closed, 'mirrored', 'v2', {});
    const mirrors = new Map([
      [host, [`http://${open.host}`]],
      [closed.host, [`http://127.0.0.1:${await freePort()}`, `http://${open.host}`]],
    ]);
    const mirrored = createRegistry({ mirrors });
    after(() => mirrored.close());
    assert.deepEqual(await mirrored.resolve(`${host}/mirrored:v1`, null), { digest });
    assert.deepEqual(await mirrored.resolve(`${closed.host}/mirrored:v2`, login()), { digest: own });
  });

  test('one that is away is unreachable', async () => {
    const image = `127.0.0.1:${await freePort()}/shop:v1`;
    await assert.rejects(registry.resolve(image, null), isFault('registry_unreachable', /connection refused/));
  });
});

/** A server that answers as the test says; gives its host. */
async function serve(answer: RequestListener): Promise<string> {
  const server = createServer(answer).listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  after(() => {
    server.closeAllConnections();
    server.close();
  });
  return `127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const digest = `sha256:${'a'.repeat(64)}`;
const found = (response: ServerResponse) => response.writeHead(200, { 'docker-content-digest': digest }).end();

test('a token is fetched where the registry says, with the login, for this repository', async () => {
  const asked: string[] = [];
  const auth = await serve((request, response) => {
    asked.push(`${request.url} ${request.headers.authorization}`);
    response.end(JSON.stringify({ token: 'let-me-in' }));
  });
  const host = await serve((request, response) => {
    if (request.headers.authorization === 'Bearer let-me-in') return found(response);
    const challenge = `Bearer realm="http://${auth}/token",service="here"`;
    return response.writeHead(401, { 'www-authenticate': challenge }).end();
  });
  const login = { username: 'ann', password: 's', server: host };
  assert.deepEqual(await registry.resolve(`${host}/team/shop:v1`, login), { digest });
  const basic = `Basic ${Buffer.from('ann:s').toString('base64')}`;
  assert.deepEqual(asked, [`/token?scope=repository%3Ateam%2Fshop%3Apull&service=here ${basic}`]);
});

test('an identity token is exchanged for one', async () => {
  const auth = await serve(async (request: IncomingMessage, response) => {
    let body = '';
    for await (const chunk of request) body += chunk;
    const form = new URLSearchParams(body);
    const isRight = form.get('grant_type') === 'refresh_token' && form.get('refresh_token') === 'identity';
    response.writeHead(isRight ? 200 : 401).end(JSON.stringify({ access_token: 'let-me-in' }));
  });
  const host = await serve((request, response) => {
    if (request.headers.authorization === 'Bearer let-me-in') return found(response);
    return response.writeHead(401, { 'www-authenticate': `Bearer realm="http://${auth}/token"` }).end();
  });
  const login = { username: '', password: '', identitytoken: 'identity', server: host };
  assert.deepEqual(await registry.resolve(`${host}/shop:v1`, login), { digest });
});

test('a login goes neither to another host nor over a connection without TLS', async () => {
  const seen: (string | undefined)[] = [];
  const other = await serve((request, response) => {
    seen.push(request.headers.authorization);
    found(response);
  });
  const host = await serve((request, response) => {
    if (!request.headers.authorization) return response.writeHead(401, { 'www-authenticate': 'Basic' }).end();
    return response.writeHead(307, { location: `http://${other}${request.url}` }).end();
  });
  const login = { username: 'ann', password: 's', server: host };
  assert.deepEqual(await registry.resolve(`${host}/shop:v1`, login), { digest });
  assert.deepEqual(seen, [undefined]);

  const away = await serve((_, response) => response.writeHead(307, { location: 'http://registry.example/' }).end());
  await assert.rejects(registry.resolve(`${away}/shop:v1`, null), isFault('registry_unreachable', /redirects/));
  const realm = await serve((_, response) =>
    response.writeHead(401, { 'www-authenticate': 'Bearer realm="http://registry.example/token"' }).end(),
  );
  await assert.rejects(registry.resolve(`${realm}/shop:v1`, login), isFault('registry_unreachable', /for a token/));
});

test('redirects end, answers are bounded, silence is not waited for', async () => {
  const circle = await serve((request, response) => response.writeHead(307, { location: request.url! }).end());
  await assert.rejects(registry.resolve(`${circle}/shop:v1`, null), isFault('registry_unreachable', /redirects/));

  const endless = await serve((request, response) => {
    if (request.method === 'HEAD') return response.writeHead(200).end();
    response.writeHead(200);
    const more = (error?: Error | null) => void (error || response.write(Buffer.alloc(1024 * 1024), more));
    return more();
  });
  await assert.rejects(registry.resolve(`${endless}/shop:v1`, null), isFault('registry_unreachable', /longer than/));

  const hasty = createRegistry({ timeoutMs: 200 });
  after(() => hasty.close());
  const silent = await serve(() => {});
  await assert.rejects(hasty.resolve(`${silent}/shop:v1`, null), isFault('registry_failing', /no answer in time/));
});

test('too many requests, a server in trouble and another digest are told apart', async () => {
  const answers: [status: number, fault: EngineFault, words: RegExp][] = [
    [429, 'registry_rate_limited', /no more requests/],
    [503, 'registry_failing', /status 503/],
    [403, 'image_denied', /does not give out/],
  ];
  for (const [status, fault, words] of answers) {
    const host = await serve((_, response) => response.writeHead(status).end('{"errors":[{"code":"X"}]}'));
    await assert.rejects(registry.resolve(`${host}/shop:v1`, null), isFault(fault, words));
  }
  const host = await serve((_, response) => found(response));
  const wanted = `sha256:${'b'.repeat(64)}`;
  await assert.rejects(
    registry.resolve(`${host}/shop@${wanted}`, null),
    isFault('registry_failing', /when asked for sha256:bbb/),
  );
});

test('without the digest in its head, a manifest is read and its digest computed', async () => {
  const body = '{"schemaVersion":2}';
  const host = await serve((request, response) => response.writeHead(200).end(request.method === 'HEAD' ? '' : body));
  const expected = `sha256:${createHash('sha256').update(body).digest('hex')}`;
  assert.deepEqual(await registry.resolve(`${host}/shop:v1`, null), { digest: expected });
});
