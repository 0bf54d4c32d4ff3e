// Ten domains against a thousand, both with the local CA: how long a start takes until it is ready, and a handshake, the
// first one of a name and later ones. Each side has a service of its own; they take turns.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect } from 'node:tls';
import { fileURLToPath } from 'node:url';
import { createApp } from '../src/app.ts';
import { readConfig } from '../src/config.ts';
import { freePort } from '../test/helpers/free-port.ts';
import { note } from './lib/report.ts';

const main = fileURLToPath(new URL('../bin/start.js', import.meta.url));
const token = 'bench-admin-token-0123456789';
const sizes = [10, 1000] as const;
const rounds = 10;
const handshakes = 10;

interface Side {
  count: number;
  dataDir: string;
  startMs: number[];
  coldMs: number[];
  warmMs: number[];
}

interface Running {
  url: string;
  tlsPort: number;
  startMs: number;
  stop(): Promise<void>;
}

const settings = ({ dataDir }: Side): Record<string, string> => ({
  SLUICE_DATA_DIR: dataDir,
  SLUICE_REGIONS: 'local=standin:',
  SLUICE_ADMIN_TOKEN: token,
  SLUICE_SAMPLE: 'off',
  SLUICE_LOG_LEVEL: 'silent',
});

async function start(side: Side): Promise<Running> {
  const [port, routerPort, tlsPort] = [await freePort(), await freePort(), await freePort()];
  const ports = {
    SLUICE_PORT: String(port),
    SLUICE_ROUTER_PORT: String(routerPort),
    SLUICE_ROUTER_TLS_PORT: String(tlsPort),
    SLUICE_DATA_PLANE: 'builtin',
  };
  const startedAt = performance.now();
  const env = { PATH: process.env.PATH, ...settings(side), ...ports };
  const child = spawn(process.execPath, [main], { stdio: 'ignore', env });
  const exited = once(child, 'close');
  const url = `http://127.0.0.1:${port}`;
  while (!(await isReady(url))) {
    if (child.exitCode !== null) throw new Error('the service ended');
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  const startMs = performance.now() - startedAt;
  const stop = async () => {
    child.kill('SIGTERM');
    await exited;
  };
  return { url, tlsPort, startMs, stop };
}

const isReady = (url: string) =>
  fetch(`${url}/readyz`).then(
    ({ ok }) => ok,
    () => false,
  );

const hostnameOf = (n: number) => `bench-${n}.example`;

/** Adds the domains and waits until each has its certificate. */
async function fill(side: Side): Promise<void> {
  const ports = { SLUICE_PORT: '0', SLUICE_ROUTER_PORT: '0', SLUICE_ROUTER_TLS_PORT: '0' };
  const app = await createApp(readConfig({ ...settings(side), ...ports }, false), { tokenLimit: 1_000_000 });
  const call = async (method: string, path: string, body?: object) => {
    const headers = { authorization: `Bearer ${token}`, ...(body && { 'content-type': 'application/json' }) };
    const answer = await fetch(app.apiUrl() + path, { method, headers, ...(body && { body: JSON.stringify(body) }) });
    if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status}`);
    return answer.json();
  };
  const { id } = await call('POST', '/v1/projects', { name: 'Bench' });
  for (let n = 0; n < side.count; n++)
    await call('POST', `/v1/projects/${id}/domains`, { hostname: hostnameOf(n), environment: 'production' });
  const waiting = app.store.db.selectFrom('domain').select('id').where('certificate_id', 'is', null);
  while ((await waiting.execute()).length > 0) await new Promise((resolve) => setTimeout(resolve, 200));
  await app.stop();
}

async function handshakeMs(port: number, servername: string): Promise<number> {
  const startedAt = performance.now();
  const socket = connect({
    host: '127.0.0.1',
    port,
    servername,
    rejectUnauthorized: false,
    ALPNProtocols: ['http/1.1'],
  });
  await once(socket, 'secureConnect');
  const took = performance.now() - startedAt;
  socket.destroy();
  return took;
}

async function measure(side: Side): Promise<void> {
  const service = await start(side);
  side.startMs.push(service.startMs);
  // The very first one pays for code that is loaded once, whatever the number of domains.
  await handshakeMs(service.tlsPort, hostnameOf(0));
  const step = Math.max(1, Math.floor((side.count - 1) / 9));
  for (let n = 1; n <= 9; n++) side.coldMs.push(await handshakeMs(service.tlsPort, hostnameOf(n * step)));
  for (let n = 0; n < handshakes; n++) side.warmMs.push(await handshakeMs(service.tlsPort, hostnameOf(step)));
  await service.stop();
}

/** A fifth of the values are lower: what the machine does besides disturbs this less than a median. */
const usual = (values: number[]) => values.toSorted((a, b) => a - b)[Math.floor(values.length / 5)]!;

const sides: Side[] = sizes.map((count) => ({
  count,
  dataDir: mkdtempSync(join(tmpdir(), 'sluice-bench-domains-')),
  startMs: [],
  coldMs: [],
  warmMs: [],
}));
try {
  for (const side of sides) await fill(side);
  for (let round = 0; round < rounds; round++) for (const side of sides) await measure(side);
  const [few, many] = sides as [Side, Side];
  for (const [what, name] of [
    ['start until ready', 'startMs'],
    ['first handshake of a name', 'coldMs'],
    ['later handshakes', 'warmMs'],
  ] as const) {
    const [small, large] = [usual(few[name]), usual(many[name])];
    const values = `${small.toFixed(1)} ms with ${few.count}, ${large.toFixed(1)} ms with ${many.count}`;
    note(`${what}, 1,000 domains / 10`, (large / small).toFixed(2), `${values}; lowest fifth`);
  }
} finally {
  for (const { dataDir } of sides) rmSync(dataDir, { recursive: true, force: true });
}
