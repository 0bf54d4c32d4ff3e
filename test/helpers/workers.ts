// Router workers as processes of their own, with this process as their supervisor: it opens their sockets and keeps them
// open, so that connections wait where one worker has ended and the next has not begun. All of them end with the test file.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import * as net from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { after } from 'node:test';
import { pino } from 'pino';
import { createSeal, type Seal } from '../../src/lib/seal.ts';
import type { ChildReport } from '../../src/supervisor/supervisor-protocol.ts';
import { supervisorSocketPath } from '../../src/supervisor/supervisor-socket.ts';
import type {
  CertificateSource,
  EnvironmentRoutes,
  RouterPorts,
  StoredCertificate,
} from '../../src/traffic/data-plane.ts';
import type { ProxyLimits } from '../../src/traffic/proxy/limits.ts';
import { agentSocketPath, type WorkerSettings } from '../../src/traffic/worker/agent-protocol.ts';
import { DiskCertificates, routingKey } from '../../src/traffic/worker/routing-files.ts';
import { WorkerPlane } from '../../src/traffic/worker/worker-plane.ts';
import { bundledEntry } from './own-process.ts';
import { issue } from './router-certificates.ts';
import { until } from './wait.ts';

interface BoundSocket {
  fd: number;
  getsockname(out: { port?: number }): number;
  close(): void;
}

/** A socket that is bound but accepts nothing here: those who get its descriptor do. */
function bindSocket(): BoundSocket {
  const create = (net as unknown as { _createServerHandle(host: string, port: number, type: number): BoundSocket })
    ._createServerHandle;
  return create('127.0.0.1', 0, 4);
}

function portOf(socket: BoundSocket): number {
  const out: { port?: number } = {};
  socket.getsockname(out);
  return out.port!;
}

export interface TestWorker {
  child: ChildProcess;
  ready: Promise<unknown>;
  exited: Promise<[code: number | null, signal: string | null]>;
  output(): string;
}

export interface TestWorkers {
  dataDir: string;
  routingDir: string;
  agentSocket: string;
  seal: Seal;
  secretKey: Buffer;
  ports: RouterPorts & { tls: number };
  /** Starts one; `ready` resolves once it accepts requests. */
  start(more?: { limits?: Partial<ProxyLimits>; drainS?: number }): TestWorker;
}

/** A data directory with sockets for workers, none of which is started. */
export function openWorkers(secretKey = Buffer.alloc(32, 7)): TestWorkers {
  const dataDir = mkdtempSync(join(tmpdir(), 'sluice-workers-'));
  const seal = createSeal(secretKey);
  const sockets = [bindSocket(), bindSocket()] as const;
  const agentSocket = agentSocketPath(dataDir);
  const children = new Set<ChildProcess>();
  const killAll = () => {
    for (const child of children) child.kill('SIGKILL');
  };
  process.on('exit', killAll);
  after(async () => {
    const ended = [...children].map((child) => once(child, 'exit'));
    killAll();
    await Promise.all(ended);
    process.off('exit', killAll);
    for (const socket of sockets) socket.close();
    rmSync(dataDir, { recursive: true, force: true });
  });
  let count = 0;
  return {
    dataDir,
    routingDir: join(dataDir, 'routing'),
    agentSocket,
    seal,
    secretKey,
    ports: { http: portOf(sockets[0]), tls: portOf(sockets[1]) },
    start({ limits = {}, drainS = 30 } = {}) {
      const settings: WorkerSettings = {
        name: `w${++count}`,
        agentSocket,
        supervisorSocket: supervisorSocketPath(dataDir),
        routingDir: join(dataDir, 'routing'),
        routingKey: routingKey(seal).toString('base64'),
        drainS,
        httpFd: 3,
        tlsFd: 4,
        redirect: null,
        trustedProxies: [],
        limits,
        logLevel: 'info',
        logFormat: 'json',
      };
      const child = spawn(process.execPath, [bundledEntry('router-worker')], {
        env: { PATH: process.env.PATH, SLUICE_WORKER: JSON.stringify(settings) },
        stdio: ['ignore', 'pipe', 'pipe', sockets[0].fd, sockets[1].fd, 'ipc'],
      });
      children.add(child);
      child.once('exit', () => children.delete(child));
      let output = '';
      for (const stream of [child.stdout!, child.stderr!]) stream.on('data', (chunk) => (output += chunk));
      const exited = once(child, 'exit') as TestWorker['exited'];
      const failed = exited.then(([code, signal]) => Promise.reject(new Error(`ended: ${code ?? signal}\n${output}`)));
      const said = new Promise<void>((resolve) => {
        child.on('message', (report: ChildReport) => void (report.ready && resolve()));
      });
      const ready = Promise.race([said, failed]);
      ready.catch(() => {}); // a test that waits for it is told
      return { child, ready, exited, output: () => output };
    },
  };
}

/** The agent's side of the workers, without an agent: tables are given by hand. */
export async function openPlane(workers: TestWorkers) {
  const certificates = new Map<string, StoredCertificate>();
  const challenges = new Map<string, string>();
  const source: CertificateSource = {
    async find(hostname, known) {
      const found = certificates.get(hostname) ?? null;
      return found && found.id === known ? 'current' : found;
    },
    answerChallenge: async (hostname, token) => challenges.get(`${hostname} ${token}`) ?? null,
  };
  const { agentSocket: socketPath, routingDir, ports, seal } = workers;
  const disk = new DiskCertificates(routingDir, routingKey(seal));
  const log = pino({ enabled: false });
  const plane = new WorkerPlane({ socketPath, routingDir, ports, source, disk, log });
  const left: string[] = [];
  plane.observe({ joining: async () => {}, catchUp: async () => {}, moved: () => {}, left: (id) => left.push(id) });
  let version = 0;
  let stopped = false;
  const stop = async () => {
    if (!stopped) await plane.stop();
    stopped = true;
  };
  after(stop);
  return {
    plane,
    left,
    certificates,
    challenges,
    stop,
    /** Replaces the whole table. */
    load: (...environments: EnvironmentRoutes[]) => plane.load(++version, Readable.from([environments])),
    /** Changes some environments, and waits until every worker follows. */
    async change(...environments: EnvironmentRoutes[]) {
      plane.change(++version, environments);
      await until('every worker to follow', () => plane.routers().every((router) => router.version === version));
    },
    async certify(hostname: string) {
      const { certificate, key, serial } = await issue(hostname);
      certificates.set(hostname, { id: serial, chainPem: certificate, keyPem: key });
      plane.expireCertificates([hostname]);
      return serial;
    },
  };
}
