// The real service behind deploy/nginx.conf, in which only ports and the path of the certificate are replaced.
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { type ClientRequest, type IncomingMessage, request as plainRequest } from 'node:http';
import { request as secureRequest } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { adminToken, startApp, type TestApp } from '../helpers/app.ts';
import { freePort } from '../helpers/free-port.ts';
import { Shop } from '../helpers/shop.ts';
import { until } from '../helpers/wait.ts';

let t: TestApp;
let stopNginx: () => Promise<void>;
let securePort: number;
let plainPort: number;

const answerOf = (ask: ClientRequest) =>
  new Promise<IncomingMessage>((resolve, reject) => {
    ask.on('response', resolve).on('error', reject).end();
  });

/** A request from another address than nginx's own. */
const askApi = (path: string, method = 'GET') =>
  secureRequest({
    host: '127.0.0.1',
    port: securePort,
    path,
    method,
    localAddress: '127.0.0.2',
    servername: 'sluice.example',
    rejectUnauthorized: false,
    headers: { host: 'sluice.example', authorization: `Bearer ${adminToken}` },
  });

async function startNginx(apiPort: string, routerPort: string): Promise<() => Promise<void>> {
  const dir = mkdtempSync(join(tmpdir(), 'sluice-nginx-'));
  const [key, chain] = [join(dir, 'privkey.pem'), join(dir, 'fullchain.pem')];
  const made = ['-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '2', '-subj', '/CN=sluice.example'];
  execFileSync('openssl', ['req', ...made, '-keyout', key, '-out', chain], { stdio: 'ignore' });
  const site = readFileSync('deploy/nginx.conf', 'utf8')
    .replace('127.0.0.1:8080', `127.0.0.1:${apiPort}`)
    .replace('127.0.0.1:8000', `127.0.0.1:${routerPort}`)
    .replace('listen 443', `listen 127.0.0.1:${securePort}`)
    .replace('listen 80', `listen 127.0.0.1:${plainPort}`)
    .replaceAll('/etc/ssl/sluice.example/', `${dir}/`);
  const temp = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'];
  for (const name of temp) mkdirSync(join(dir, name));
  writeFileSync(
    join(dir, 'nginx.conf'),
    `daemon off; worker_processes 1; pid ${dir}/pid; error_log stderr error;
    ${process.getuid?.() === 0 ? 'user root;' : ''}
    events { worker_connections 256; }
    http { access_log off; ${temp.map((name) => `${name}_temp_path ${dir}/${name};`).join(' ')} ${site} }`,
  );
  const child = spawn('nginx', ['-p', dir, '-c', join(dir, 'nginx.conf'), '-e', 'stderr'], {
    env: { ...process.env, PATH: `${process.env.PATH}:/usr/sbin` },
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  const closed = new Promise<void>((resolve) => child.on('close', () => resolve()));
  return async () => {
    child.kill('SIGTERM');
    await closed;
    rmSync(dir, { recursive: true, force: true });
  };
}

before(async () => {
  t = await startApp({
    env: { SLUICE_TRUSTED_PROXIES: '127.0.0.1/32', SLUICE_API_URL: 'https://sluice.example' },
  });
  securePort = await freePort();
  plainPort = await freePort();
  const { port } = t.app.server.server.address() as { port: number };
  stopNginx = await startNginx(String(port), new URL(t.app.routerUrl!.replace('*', 'x')).port);
  const isUp = () =>
    answerOf(askApi('/livez'))
      .then(({ statusCode }) => statusCode === 200 || undefined)
      .catch(() => undefined);
  await until('nginx to answer', isUp);
});
after(async () => {
  await stopNginx();
  await t.stop();
});

test('the audit log has the address of the visitor, and Location the public one', async () => {
  const { port } = t.app.server.server.address() as { port: number };
  const ask = askApi('/v1/projects', 'POST');
  ask.setHeader('content-type', 'application/json');
  ask.write(JSON.stringify({ name: 'Behind' }));
  const answer = await answerOf(ask);
  assert.equal(answer.statusCode, 201);
  assert.match(answer.headers.location!, /^https:\/\/sluice\.example\/v1\/projects\/prj_/);
  answer.resume();
  const log = await fetch(`http://127.0.0.1:${port}/v1/audit-log?limit=1`, {
    headers: { authorization: `Bearer ${adminToken}`, 'x-forwarded-for': 'not an address' },
  });
  assert.equal(((await log.json()) as { data: { address: string }[] }).data[0]!.address, '127.0.0.2');
});

test('webhooks to loopback are refused: what runs beside the service is not for those outside', async () => {
  const ask = askApi('/v1/webhooks', 'POST');
  ask.setHeader('content-type', 'application/json');
  const { port } = t.app.server.server.address() as { port: number };
  ask.write(JSON.stringify({ url: `http://127.0.0.1:${port}/metrics`, events: ['*'] }));
  const answer = await answerOf(ask);
  assert.equal(answer.statusCode, 422);
  const text = (await answer.toArray()).join('');
  assert.equal(JSON.parse(text).error.code, 'webhook_url_not_allowed');
});

test('an event passes at once, and a deployed revision answers', async () => {
  const { port } = t.app.server.server.address() as { port: number };
  const stream = await answerOf(askApi('/v1/events/stream'));
  let received = '';
  stream.on('data', (chunk: Buffer) => {
    received += chunk;
  });
  const shop = await Shop.open(`http://127.0.0.1:${port}`);
  const { id } = await shop.deploy('registry.example/shop:1');
  await until('the event', () => received.includes(id));
  stream.destroy();
  await shop.reaches(id, 'succeeded');
  const visit = plainRequest({ host: '127.0.0.1', port: plainPort, path: '/a?b=c', headers: { host: shop.host } });
  const answer = await answerOf(visit);
  assert.equal(answer.statusCode, 200);
  answer.resume();
});

test('metrics are not published', async () => {
  for (const path of ['/metrics', '/%6Detrics', '//metrics', '/metrics/', '/v1/../metrics', '/metrics?a']) {
    const answer = await answerOf(askApi(path));
    assert.equal(answer.statusCode, 403, path);
    answer.resume();
  }
});
