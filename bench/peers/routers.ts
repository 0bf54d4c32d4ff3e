// The routers that `npm run bench -- peers` compares, each before the same backend, each with the defaults of its makers
// but for the log of requests, which all of them write where they do so by themselves.
import { type ChildProcess, execFile, execFileSync, spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { onPath } from '../../scripts/packages.ts';
import type { CertificateSource, EnvironmentRoutes } from '../../src/traffic/data-plane.ts';
import { runningMaster } from '../../src/traffic/haproxy/haproxy-process.ts';
import { childrenOf } from '../../test/helpers/children.ts';
import { freePort } from '../../test/helpers/free-port.ts';
import { startHaproxy } from '../../test/helpers/haproxy.ts';
import { issue } from '../../test/helpers/router-certificates.ts';
import { until } from '../../test/helpers/wait.ts';
import { end, startServer, tempDir } from '../lib/processes.ts';
import { startNginxRouter, type TlsPort } from '../router/nginx.ts';
import { bodyAt } from '../router/router-load.ts';

export const plainHost = 'bench.localhost';
/** wrk takes the server name from the address that it connects to. */
export const secureHost = 'localhost';

export interface PeerRouter {
  name: string;
  port: number;
  tlsPort: number;
  /** Those that carry requests. */
  carriers(): number[];
  stop(): Promise<void>;
}

/** One that gets a new backend in its own way; Sluice's deployments are started through its API instead. */
export interface MovableRouter extends PeerRouter {
  /** Resolves when it says that the new backend has taken over. */
  moveTo(backendPort: number): Promise<void>;
}

const issued = await issue(secureHost);
const run = promisify(execFile);

function version(program: string, ...args: string[]): string {
  const printed = execFileSync(program, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] });
  return /v?(\d+\.\d+\.\d+)/.exec(printed)?.[1] ?? 'of unknown version';
}

/** In a folder of its own, which is its home as well. */
function startProgram(program: string, args: string[], dir: string): ChildProcess {
  const env = { PATH: process.env.PATH, HOME: dir, XDG_RUNTIME_DIR: dir, XDG_CONFIG_HOME: dir, XDG_DATA_HOME: dir };
  const child = spawn(program, args, { env, cwd: dir, stdio: 'ignore' });
  process.on('exit', () => child.kill('SIGKILL'));
  return child;
}

const answers = (port: number) => until('an answer', () => bodyAt(port, plainHost), 20_000);

function routesTo(host: string, secure: boolean, port: number): EnvironmentRoutes {
  const targets = [{ instance: 'bench-1', host: '127.0.0.1', port }];
  const names = { project: host, environment: 'production' };
  return { ...names, hosts: [{ name: host, secure }], shares: [{ revision: 1, percent: 100, targets }] };
}

export async function startBuiltIn(backendPort: number): Promise<PeerRouter> {
  const tlsPort = await freePort();
  const { url, pid, stop } = await startServer('../router/router-server.ts', {
    BENCH_TABLE: JSON.stringify([routesTo(plainHost, false, backendPort), routesTo(secureHost, false, backendPort)]),
    BENCH_CERTIFICATE: JSON.stringify(issued),
    BENCH_TLS_PORT: String(tlsPort),
  });
  return { name: 'Sluice, built-in', port: Number(new URL(url).port), tlsPort, carriers: () => [pid], stop };
}

export async function startHaproxyPlane(backendPort: number): Promise<PeerRouter> {
  const stored = { id: issued.serial, chainPem: issued.certificate, keyPem: issued.key };
  const certificates: CertificateSource = {
    find: async (name) => (name === secureHost ? stored : null),
    answerChallenge: async () => null,
  };
  const { port, tls, files, change, stop } = await startHaproxy({ certificates });
  await change([routesTo(plainHost, false, backendPort)]);
  await change([routesTo(secureHost, true, backendPort)]);
  await answers(port);
  return {
    name: `Sluice, HAProxy ${version('haproxy', '-v')}`,
    ...{ port, tlsPort: tls, stop: () => stop(0) },
    carriers: () => childrenOf(runningMaster(files)!, 'haproxy'),
  };
}

export async function startNginxPeer(backendPort: number): Promise<MovableRouter> {
  const tls: TlsPort = { port: await freePort(), issued };
  const nginx = await startNginxRouter([plainHost, secureHost], backendPort, 2, tls);
  const printed = await run('nginx', ['-v'], { env: { PATH: `${process.env.PATH}:/usr/sbin` } });
  return {
    name: `nginx ${/[\d.]+$/m.exec(printed.stderr.trim())?.[0]}`,
    ...{ port: nginx.port, tlsPort: tls.port, carriers: nginx.workers, stop: () => nginx.stop() },
    async moveTo(to) {
      const old = nginx.workers();
      nginx.moveTo(to);
      // It does not say when; the old workers end when the requests that they have are answered.
      await until('new workers', () => !nginx.workers().some((pid) => old.includes(pid)) || undefined, 30_000, 10);
    },
  };
}

export async function startCaddy(backendPort: number): Promise<MovableRouter> {
  const [dir, admin, port, tlsPort] = [tempDir(), await freePort(), await freePort(), await freePort()];
  const file = join(dir, 'Caddyfile');
  writeFileSync(join(dir, 'cert.pem'), issued.certificate);
  writeFileSync(join(dir, 'key.pem'), issued.key);
  const configure = (to: number) =>
    writeFileSync(
      file,
      `{
  admin 127.0.0.1:${admin}
  default_bind 127.0.0.1
  http_port ${port}
  https_port ${tlsPort}
  auto_https disable_redirects
}
http://${plainHost} {
  log
  reverse_proxy 127.0.0.1:${to}
}
https://${secureHost} {
  log
  tls ${dir}/cert.pem ${dir}/key.pem
  reverse_proxy 127.0.0.1:${to}
}
`,
    );
  configure(backendPort);
  const child = startProgram('caddy', ['run', '--config', file, '--adapter', 'caddyfile'], dir);
  await answers(port);
  return {
    name: `Caddy ${version('caddy', 'version')}`,
    ...{ port, tlsPort, carriers: () => [child.pid!], stop: () => end(child) },
    async moveTo(to) {
      configure(to);
      await run('caddy', ['reload', '--config', file, '--adapter', 'caddyfile', '--address', `127.0.0.1:${admin}`]);
    },
  };
}

/** It has no flag for an address to listen at. */
export async function startKamalProxy(backendPort: number): Promise<MovableRouter> {
  const [dir, port, tlsPort] = [tempDir(), await freePort(), await freePort()];
  writeFileSync(join(dir, 'cert.pem'), issued.certificate);
  writeFileSync(join(dir, 'key.pem'), issued.key);
  const child = startProgram('kamal-proxy', ['run', '--http-port', `${port}`, '--https-port', `${tlsPort}`], dir);
  const env = { PATH: process.env.PATH, HOME: dir, XDG_RUNTIME_DIR: dir };
  const deploy = (service: string, to: number, ...more: string[]) =>
    run('kamal-proxy', ['deploy', service, '--target', `127.0.0.1:${to}`, '--health-check-path', '/small', ...more], {
      env,
    });
  await until('kamal-proxy to take commands', () => run('kamal-proxy', ['list'], { env }).catch(() => null), 20_000);
  await deploy('bench', backendPort, '--host', plainHost);
  const pair = ['--tls-certificate-path', join(dir, 'cert.pem'), '--tls-private-key-path', join(dir, 'key.pem')];
  await deploy('secure', backendPort, '--host', secureHost, '--tls', ...pair);
  await answers(port);
  return {
    name: 'kamal-proxy',
    ...{ port, tlsPort, carriers: () => [child.pid!], stop: () => end(child) },
    moveTo: async (to) => void (await deploy('bench', to, '--host', plainHost)),
  };
}

/** Those that are installed: kamal-proxy is in no package of Debian's, the others are installed by the benchmark. */
export const peers: { start(backendPort: number): Promise<PeerRouter | MovableRouter> }[] = [
  { start: startBuiltIn },
  { start: startHaproxyPlane },
  { start: startNginxPeer },
  { start: startCaddy },
  ...(onPath('kamal-proxy') ? [{ start: startKamalProxy }] : []),
];
