// The real parts of a run: a Docker engine with a registry, two services on one PostgreSQL or one on SQLite, receivers of
// webhooks.
import { randomBytes } from 'node:crypto';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { haproxyFilesOf } from '../../src/traffic/haproxy/haproxy-files.ts';
import { runningMaster, stopMaster } from '../../src/traffic/haproxy/haproxy-process.ts';
import { adminToken } from '../helpers/app.ts';
import { childrenOf } from '../helpers/children.ts';
import { startDocker, startRegistry, type TestDocker, type TestRegistry } from '../helpers/docker.ts';
import { freePort } from '../helpers/free-port.ts';
import { startPostgres, type TestPostgres } from '../helpers/postgres.ts';
import { main } from '../helpers/service.ts';
import { until } from '../helpers/wait.ts';
import { KeptProcess } from './kept-process.ts';
import type { DatabaseKind, Plane } from './records.ts';

export interface SoakedService {
  name: string;
  plane: Plane;
  dataDir: string;
  url: string;
  routerPort: number;
  process: KeptProcess;
  control(): number[];
  workers(): number[];
  /** Resolves when its router answers. */
  routes(): Promise<void>;
}

export interface SoakedReceiver {
  url: string;
  arrivalsPath: string;
  process: KeptProcess;
}

export interface World {
  /** With the logs of all. */
  folder: string;
  /** null: the one service there is has a file. */
  postgres: TestPostgres | null;
  docker: TestDocker;
  registry: TestRegistry;
  services: SoakedService[];
  receivers: SoakedReceiver[];
  stop(): Promise<void>;
}

/** A service for each of the planes, on one database. */
export interface Installation {
  database: DatabaseKind;
  planes: Plane[];
}

const receiverMain = join(import.meta.dirname, 'receiver-main.ts');

export async function startWorld({ database, planes }: Installation): Promise<World> {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-chaos-'));
  const undo: (() => Promise<void>)[] = [];
  const stop = async () => {
    for (const step of undo.reverse()) await step();
  };
  try {
    const postgres = database === 'postgres' ? await startPostgres() : null;
    if (postgres) undo.push(postgres.stop);
    const docker = await startDocker();
    undo.push(docker.stop);
    const registry = await startRegistry();
    undo.push(registry.stop);
    const receivers = await Promise.all([1, 2, 3].map((n) => receiverAt(join(folder, `receiver-${n}`))));
    const shared = {
      ...(postgres && { SLUICE_DATABASE_URL: postgres.url }),
      SLUICE_SECRET_KEY: randomBytes(32).toString('hex'),
      SLUICE_REGIONS: `local=docker:${docker.socket}`,
    };
    const services = await Promise.all(
      planes.map((plane, i) => serviceAt('ab'[i]!, plane, join(folder, 'ab'[i]!), shared)),
    );
    for (const { dataDir } of services) undo.push(() => stopMaster(haproxyFilesOf(dataDir), 0));
    for (const { process } of [...receivers, ...services]) undo.push(() => process.close());
    for (const { process } of [...receivers, ...services]) process.start();
    await Promise.all([...receivers, ...services].map(({ process }) => process.ready()));
    return { folder, postgres, docker, registry, services, receivers, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

export const forget = ({ folder }: World): void => rmSync(folder, { recursive: true, force: true });

async function serviceAt(
  name: string,
  plane: Plane,
  dataDir: string,
  shared: Record<string, string>,
): Promise<SoakedService> {
  mkdirSync(dataDir);
  const [port, routerPort, tlsPort] = [await freePort(), await freePort(), await freePort()];
  const url = `http://127.0.0.1:${port}`;
  const answers = async () => (await statusOf(`http://127.0.0.1:${routerPort}/`)) > 0;
  const kept = new KeptProcess({
    args: [main],
    env: {
      SLUICE_DATA_DIR: dataDir,
      SLUICE_PORT: String(port),
      SLUICE_ROUTER_PORT: String(routerPort),
      SLUICE_ROUTER_TLS_PORT: String(tlsPort),
      SLUICE_DATA_PLANE: plane,
      SLUICE_ROUTER_WORKERS: '2',
      SLUICE_ADMIN_TOKEN: adminToken,
      SLUICE_SAMPLE: 'off',
      SLUICE_LOG_FORMAT: 'json',
      SLUICE_DRAIN_S: '30',
      ...shared,
    },
    logPath: `${dataDir}.log`,
    answers: async () => (await statusOf(`${url}/readyz`)) === 200 && (await answers()),
  });
  const haproxyWorkers = () => childrenOf(runningMaster(haproxyFilesOf(dataDir)) ?? 0, 'haproxy');
  const children = (entry: string) => (kept.pid === null ? [] : childrenOf(kept.pid, entry));
  return {
    name,
    plane,
    dataDir,
    url,
    routerPort,
    process: kept,
    control: () => children('control.js'),
    workers: plane === 'haproxy' ? haproxyWorkers : () => children('router-worker.js'),
    routes: () => until(`the router of ${name}`, () => answers().catch(() => false), 120_000, 100).then(() => {}),
  };
}

async function receiverAt(path: string): Promise<SoakedReceiver> {
  const port = await freePort();
  const url = `http://127.0.0.1:${port}/`;
  const kept = new KeptProcess({
    args: [receiverMain, String(port), path],
    env: {},
    logPath: `${path}.log`,
    answers: async () => (await statusOf(url)) === 200,
  });
  return { url, arrivalsPath: path, process: kept };
}

function statusOf(url: string): Promise<number> {
  return new Promise((resolve, reject) => {
    request(url, { agent: false, timeout: 5000 }, (response) => {
      response.resume();
      resolve(response.statusCode!);
    })
      .on('timeout', function (this: { destroy(error: Error): void }) {
        this.destroy(new Error('no answer'));
      })
      .on('error', reject)
      .end();
  });
}
