// Replacing the processes of a running service by what is on disk: nobody is refused, nothing is cut.
import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import { get, type IncomingMessage, request } from 'node:http';
import { join } from 'node:path';
import { json } from 'node:stream/consumers';
import { test } from 'node:test';
import { adminToken, call, isolatedEnv } from '../../helpers/app.ts';
import { childrenOf, isAlive } from '../../helpers/children.ts';
import { startProgram } from '../../helpers/cli.ts';
import { copyInstall, type InstalledCopy } from '../../helpers/installed-copy.ts';
import { type Load, startLoad } from '../../helpers/load.ts';
import { type Service, startService } from '../../helpers/service.ts';
import { until } from '../../helpers/wait.ts';

const headers = { authorization: `Bearer ${adminToken}` };
const big = randomBytes(24 * 1024 * 1024);
const sha = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex');

interface Scene {
  install: InstalledCopy;
  service: Service;
  url: string;
  env: Record<string, string>;
  version(): Promise<string>;
  /** `sluice reload`, as a process. */
  reload(): Promise<{ code: number; stdout: string; stderr: string }>;
}

async function scene(work: (scene: Scene) => Promise<void>): Promise<void> {
  const { env: isolated, dataDir, clean } = await isolatedEnv();
  const env = { ...isolated, SLUICE_LOG_LEVEL: 'info', SLUICE_STALL_TIMEOUT_S: '600' };
  mkdirSync(join(dataDir, 'catalogue/media'), { recursive: true });
  writeFileSync(join(dataDir, 'catalogue/media/big.mp4'), big);
  writeFileSync(join(dataDir, 'catalogue/index.html'), '<!doctype html>\n');
  const install = copyInstall();
  // On a busy machine a reload takes longer than the body of a request may.
  install.upgrade('requestMs: 3e4', 'requestMs: 6e5');
  const service = startService(env, install.main);
  try {
    const url = await service.url;
    await work({
      install,
      service,
      url,
      env,
      version: () => versionAt(url),
      reload: () => startProgram(process.execPath, [install.program, 'reload'], env).ended,
    });
    service.child.kill('SIGTERM');
    assert.deepEqual(await service.exited, [0, null], service.output());
  } finally {
    await Promise.all(loads.splice(0).map((load) => load.stop()));
    service.killAll();
    await service.exited;
    install.remove();
    await clean();
  }
}

/** Over a new connection: one that was open before may be answered once more by the old process. */
async function versionAt(url: string): Promise<string> {
  const [response] = (await once(get(`${url}/v1/openapi.json`, { headers, agent: false }), 'response')) as [
    IncomingMessage,
  ];
  return ((await json(response)) as { info: { version: string } }).info.version;
}

const loads: Load[] = [];
function startedLoad(url: string): Load {
  const load = startLoad([`${url}/v1/projects`, `${url}/index.html`], headers);
  loads.push(load);
  return load;
}

const onlyControl = ({ child }: Service) =>
  until('one control process', () => {
    const [pid, ...more] = childrenOf(child.pid!, 'control.js');
    return more.length === 0 && pid;
  });

/** Reads a little, then nothing until told to go on. */
async function slowDownload(url: string) {
  const [response] = (await once(get(`${url}/media/big.mp4`), 'response')) as [IncomingMessage];
  const chunks: Buffer[] = [];
  response.on('data', (chunk) => chunks.push(chunk));
  await once(response, 'data');
  response.pause();
  const ended = once(response, 'end');
  return async () => {
    response.resume();
    await ended;
    return sha(Buffer.concat(chunks));
  };
}

/** Sends half of its body, then nothing until told to go on. */
async function slowUpload(url: string) {
  const body = JSON.stringify({ name: 'Sent slowly' });
  const upload = request(`${url}/v1/projects`, {
    method: 'POST',
    headers: { ...headers, 'content-type': 'application/json', 'content-length': body.length, expect: '100-continue' },
  });
  upload.on('error', () => {}); // after its answer
  upload.flushHeaders();
  await once(upload, 'continue');
  const answered = once(upload, 'response') as Promise<[IncomingMessage]>;
  upload.write(body.slice(0, 10));
  return async () => {
    upload.end(body.slice(10));
    const [response] = await answered;
    response.resume();
    return response.statusCode;
  };
}

async function eventStream(url: string): Promise<{ ended: Promise<unknown> }> {
  const [response] = (await once(get(`${url}/v1/events/stream`, { headers }), 'response')) as [IncomingMessage];
  assert.equal(response.statusCode, 200);
  const ended = once(response, 'end');
  response.resume();
  return { ended };
}

test('SIGHUP with new code on disk: no request fails, downloads and uploads end in the old process', async () => {
  await scene(async ({ install, service, url, version }) => {
    const before = await version();
    const old = await onlyControl(service);
    const load = startedLoad(url);
    const download = await slowDownload(url);
    const upload = await slowUpload(url);
    const stream = await eventStream(url);
    await until('requests to flow', () => load.sent() > 50);
    install.upgrade('const version = ', "const version = '9.9.9' || ");
    service.child.kill('SIGHUP');
    await until('the reload', () => service.output().includes('reloaded: '), 60_000);
    await stream.ended;
    assert.notEqual(before, '9.9.9');
    assert.equal(await version(), '9.9.9');
    const marked = load.sent();
    await until('more requests', () => load.sent() > marked + 50);
    await load.stop();
    assert.deepEqual(load.failures, []);
    assert.equal(await upload(), 201);
    assert.ok(isAlive(old), 'the old process waits for its download');
    assert.equal(await download(), sha(big));
    await until('the old process to end', () => !isAlive(old));
    const { body } = await call(url, 'GET', '/v1/projects');
    assert.deepEqual(
      body.data.map(({ name }: { name: string }) => name),
      ['Sent slowly'],
    );
  });
});

test('`sluice reload` waits until it is done; a new version that cannot be loaded leaves the old one alone', async () => {
  await scene(async ({ install, service, url, version, reload }) => {
    const load = startedLoad(url);
    const done = await reload();
    assert.deepEqual([done.code, done.stderr.trim()], [0, 'The service runs what is on disk now.']);
    const kept = await onlyControl(service);
    install.upgrade('async function run(', 'this is no program; async function run(');
    const failed = await reload();
    assert.equal(failed.code, 1);
    assert.match(
      failed.stderr,
      /Not reloaded: the control process ended with exit code 1 .*The old processes keep serving/,
    );
    assert.equal(await onlyControl(service), kept);
    assert.notEqual(await version(), '9.9.9');
    await load.stop();
    assert.deepEqual(load.failures, []);
  });
});

test('a new version that fails once it has the database: the old one takes it back and serves on', async () => {
  await scene(async ({ install, service, url, reload }) => {
    const load = startedLoad(url);
    await until('requests to flow', () => load.sent() > 20);
    const kept = await onlyControl(service);
    const [works, fails] = ['const addresses = createAddresses', "throw new Error('cannot start'); "];
    install.upgrade(works, `${fails}${works}`);
    const failed = await reload();
    assert.equal(failed.code, 1);
    assert.match(failed.stderr, /Not reloaded: .*cannot start/);
    assert.equal(await onlyControl(service), kept);
    assert.equal((await call(url, 'POST', '/v1/projects', { body: { name: 'Still here' } })).status, 201);
    await load.stop();
    assert.deepEqual(load.failures, []);
    install.upgrade(fails, '');
    assert.equal((await reload()).code, 0);
    assert.equal((await call(url, 'GET', '/v1/projects')).body.data[0].name, 'Still here');
  });
});
