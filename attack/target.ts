// The installation that is attacked: a real service in processes of its own, with two tenants who each have a project
// that is deployed. One of them attacks; the other only wants to work.
import { execFile } from 'node:child_process';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { chmodSync, mkdirSync, readFileSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { haproxyFilesOf } from '../src/traffic/haproxy/haproxy-files.ts';
import { stopMaster } from '../src/traffic/haproxy/haproxy-process.ts';
import { call, isolatedEnv } from '../test/helpers/app.ts';
import { childrenOf } from '../test/helpers/children.ts';
import { freePort } from '../test/helpers/free-port.ts';
import { createDatabase } from '../test/helpers/postgres.ts';
import { main, startService } from '../test/helpers/service.ts';
import { until } from '../test/helpers/wait.ts';
import { type AttackerTarget, filmPath, type Tenant } from './attacks/attacker-calls.ts';
import { LogReceiver } from './log-receiver.ts';
import { type Standstill, standstillsSince } from './loop-watch.ts';

export interface Target extends AttackerTarget {
  bystander: Tenant;
  /** Gets all log lines, and refuses those of the attacker. */
  logReceiver: LogReceiver;
  /** Of the control process and the router workers together. */
  residentBytes(): number;
  /** Resolves when they have next to nothing to do, or after a minute. */
  settled(): Promise<void>;
  /** How often and for how long the loop of the control process stood still since then. */
  standstills(sinceMs: number): Standstill[];
  stop(): Promise<void>;
}

export interface Installation {
  name: string;
  /** A server; null: SQLite. */
  postgresUrl: string | null;
  plane: 'builtin' | 'haproxy';
}

export const smallInstallation: Installation = {
  name: 'SQLite, built-in router',
  postgresUrl: null,
  plane: 'builtin',
};

const filmBytes = 50 * 1024 * 1024;

/** Allows a few dozen requests a second, as a tenant with several programs has. */
const tokensPerTenant = 8;

/** `size`: how much of each quota the attacker fills. */
export async function startTarget({ postgresUrl, plane }: Installation = smallInstallation, size = 1): Promise<Target> {
  const { env, dataDir, clean } = await isolatedEnv();
  const database = postgresUrl === null ? null : await createDatabase(postgresUrl);
  const film = join(dataDir, 'catalogue', filmPath);
  mkdirSync(join(film, '..'), { recursive: true });
  writeFileSync(film, '');
  truncateSync(film, filmBytes);
  const logReceiver = await LogReceiver.open();
  const loopFile = join(dataDir, 'standstills');
  writeFileSync(loopFile, '');
  const dns = await silentDns(dataDir);
  const settings = {
    ...env,
    ...(database && { SLUICE_DATABASE_URL: database.url }),
    ...(plane === 'haproxy' && {
      SLUICE_DATA_PLANE: 'haproxy',
      SLUICE_ROUTER_PORT: String(await freePort()),
      SLUICE_ROUTER_TLS_PORT: String(await freePort()),
    }),
    SLUICE_LOGS_OTLP: logReceiver.url,
  };
  const watched = {
    LOOP_WATCH_FILE: loopFile,
    NODE_OPTIONS: `--import=${new URL('./loop-watch.ts', import.meta.url)}`,
  };
  const service = startService({ ...settings, ...watched }, main, dns.program);
  const stop = async () => {
    service.child.kill('SIGTERM');
    await service.exited;
    if (plane === 'haproxy') await stopMaster(haproxyFilesOf(dataDir), 0);
    logReceiver.close();
    dns.close();
    await database?.drop();
    await clean();
  };
  try {
    const url = await service.url;
    const worst = { replicas: 8, variables: { STANDIN_LOG_LINES: '1000', STANDIN_EARLY_HINTS: '1' } };
    const attacker = await openTenant(url, settings, 'Attacker', worst);
    const bystander = await openTenant(url, settings, 'Bystander', { variables: { STANDIN_ERROR_PATH: '/noted' } });
    logReceiver.refuse(attacker.project);
    const pids = ['control.js', 'router-worker.js'].flatMap((entry) => childrenOf(service.child.pid!, entry));
    return {
      ...{ url, attacker, bystander, logReceiver, stop, size },
      routerPort: Number(attacker.host.split(':')[1]),
      residentBytes: () => sum(pids.map(residentBytesOf)),
      settled: () => settled(pids),
      standstills: (sinceMs) => standstillsSince(loopFile, sinceMs),
    };
  } catch (error) {
    await stop();
    throw new Error(`the service could not be prepared:\n${service.output()}`, { cause: error });
  }
}

/**
 * Root can give the service a DNS server that never answers: a program that runs node with it, in a mount namespace of its
 * own. Others have the DNS of the machine.
 */
async function silentDns(folder: string): Promise<{ program: string; close(): void }> {
  if (process.getuid?.() !== 0) return { program: process.execPath, close: () => {} };
  // The port of DNS is fixed, so two runs beside each other differ in the address.
  const address = `127.53.${(process.pid >> 8) & 255}.${process.pid & 255}`;
  const socket = createSocket('udp4').bind(53, address);
  await once(socket, 'listening');
  const [program, resolvConf] = [join(folder, 'with-silent-dns'), join(folder, 'resolv.conf')];
  writeFileSync(resolvConf, `nameserver ${address}\n`);
  const inside = `mount --bind "${resolvConf}" /etc/resolv.conf && exec "${process.execPath}" "$0"`;
  writeFileSync(program, `#!/bin/sh\nexec unshare --mount sh -c '${inside}' "$1"\n`);
  chmodSync(program, 0o755);
  return { program, close: () => void socket.close() };
}

const sum = (numbers: number[]): number => numbers.reduce((total, number) => total + number, 0);

const residentBytesOf = (pid: number): number =>
  Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0) * 1024;

const ticksOf = (pid: number): number => {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]!.split(' ');
  return Number(fields[11]) + Number(fields[12]);
};

const idleTicksPerSecond = 15;

async function settled(pids: number[]): Promise<void> {
  const ticks = () => sum(pids.map(ticksOf));
  for (let second = 0, before = ticks(); second < 60; second++) {
    await new Promise((resolve) => setTimeout(resolve, 1000));
    const now = ticks();
    if (now - before <= idleTicksPerSecond) return;
    before = now;
  }
}

async function openTenant(url: string, env: Record<string, string>, name: string, settings: object): Promise<Tenant> {
  const { stdout } = await promisify(execFile)(
    process.execPath,
    ['bin/sluice.js', 'account', 'create', name, '--json'],
    { env: { PATH: process.env.PATH, ...env } },
  );
  const { token: first } = JSON.parse(stdout) as { token: string };
  const ask = async (method: string, path: string, body?: object) => {
    const answer = await call(url, method, path, { token: first, ...(body && { body }) });
    if (answer.status >= 300) throw new Error(`${method} ${path}: ${answer.status} ${JSON.stringify(answer.body)}`);
    return answer.body;
  };
  const tokens: string[] = [];
  for (let n = 0; n < tokensPerTenant; n++) {
    tokens.push((await ask('POST', '/v1/tokens', { name: `token ${n}`, scopes: ['*'] })).token);
  }
  const { id: project } = await ask('POST', '/v1/projects', { name });
  const environment = `/v1/projects/${project}/environments/production`;
  await ask('PATCH', environment, { health_check: { interval_s: 1, healthy_after: 1 }, ...settings });
  const image = 'registry.example/shop:1';
  const { id } = await ask('POST', `/v1/projects/${project}/deployments`, { environment: 'production', image });
  const isLive = async () => (await ask('GET', `/v1/projects/${project}/deployments/${id}`)).state === 'succeeded';
  await until(`${name} is live`, isLive, 60_000, 200);
  return { tokens, project, deployment: id, host: new URL((await ask('GET', environment)).url).host };
}

/** A further token of a tenant. */
export async function tokenOf(url: string, { tokens }: Tenant, of: { scopes: string[]; project_ids?: string[] }) {
  const { status, body } = await call(url, 'POST', '/v1/tokens', {
    token: tokens[0]!,
    body: { name: 'further', ...of },
  });
  if (status !== 201) throw new Error(`POST /v1/tokens: ${status} ${JSON.stringify(body)}`);
  return body.token as string;
}
