// The installation that is attacked: a real service in processes of its own, with two tenants who each have a project
// that is deployed. One of them attacks; the other only wants to work.
import { execFile } from 'node:child_process';
import { mkdirSync, readFileSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { call, isolatedEnv } from '../test/helpers/app.ts';
import { childrenOf } from '../test/helpers/children.ts';
import { startService } from '../test/helpers/service.ts';
import { until } from '../test/helpers/wait.ts';
import { type AttackerTarget, filmPath, type Tenant } from './attacks/attackers.ts';

export interface Target extends AttackerTarget {
  bystander: Tenant;
  /** Of the control process and the router workers together. */
  residentBytes(): number;
  stop(): Promise<void>;
}

const filmBytes = 50 * 1024 * 1024;

/** Allows a few dozen requests a second, as a tenant with several programs has. */
const tokensPerTenant = 4;

export async function startTarget(): Promise<Target> {
  const { env, dataDir, clean } = await isolatedEnv();
  const film = join(dataDir, 'catalogue', filmPath);
  mkdirSync(join(film, '..'), { recursive: true });
  writeFileSync(film, '');
  truncateSync(film, filmBytes);
  const service = startService(env);
  const stop = async () => {
    service.child.kill('SIGTERM');
    await service.exited;
    await clean();
  };
  try {
    const url = await service.url;
    const worst = { replicas: 8, variables: { STANDIN_LOG_LINES: '1000', STANDIN_EARLY_HINTS: '1' } };
    const attacker = await openTenant(url, env, 'Attacker', worst);
    const bystander = await openTenant(url, env, 'Bystander', {});
    const pids = ['control.js', 'router-worker.js'].flatMap((entry) => childrenOf(service.child.pid!, entry));
    const routerPort = Number(attacker.host.split(':')[1]);
    return { url, routerPort, attacker, bystander, residentBytes: () => sum(pids.map(residentBytesOf)), stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

const sum = (numbers: number[]): number => numbers.reduce((total, number) => total + number, 0);

const residentBytesOf = (pid: number): number =>
  Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0) * 1024;

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
