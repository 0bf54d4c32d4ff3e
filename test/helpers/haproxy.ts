// HAProxy on a free port, in a folder of its own. It ends with the test file.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect } from 'node:tls';
import { pino } from 'pino';
import { systemClock } from '../../src/lib/clock.ts';
import type { Log } from '../../src/lib/log.ts';
import {
  type CertificateSource,
  type DataPlane,
  type EnvironmentRoutes,
  type RouterState,
  routesKey,
} from '../../src/traffic/data-plane.ts';
import { openHaproxy } from '../../src/traffic/haproxy/haproxy.ts';
import { type HaproxyFiles, haproxyFiles } from '../../src/traffic/haproxy/haproxy-files.ts';
import { stopMaster } from '../../src/traffic/haproxy/haproxy-process.ts';
import type { Measurement } from '../../src/traffic/measurements.ts';
import { defaultLimits, type ProxyLimits } from '../../src/traffic/proxy/limits.ts';
import { atEnd } from './at-end.ts';
import { freePort } from './free-port.ts';
import { until } from './wait.ts';

export interface TestHaproxy {
  plane: DataPlane;
  port: number;
  tls: number;
  files: HaproxyFiles;
  /** Resolves when it is in force, with the certificates of its hosts. */
  change(environments: EnvironmentRoutes[]): Promise<void>;
  takeMeasurements(): Measurement[];
  /** Of all projects, or of one. */
  counted(revision: number, project?: string): Promise<Pick<Measurement, 'requests' | 'errors' | 'clientErrors'>>;
  /** Resolves when the current certificate of a name is served, or none where there is none. */
  certificateServed(name: string): Promise<void>;
  stop(drainMs: number): Promise<void>;
  /** Lets go of it and finds it again with the same table or another, as the next process does. */
  restart(table?: EnvironmentRoutes[]): Promise<TestHaproxy>;
}

const planes: (() => Promise<void>)[] = [];
const masters: (() => Promise<void>)[] = [];
atEnd(async () => {
  await Promise.all(planes.map((stop) => stop()));
  await Promise.all(masters.map((end) => end()));
});

interface TestHaproxyOptions {
  certificates?: CertificateSource | null;
  limits?: Partial<ProxyLimits>;
  redirect?: { port: number | null } | null;
  trustedProxies?: string[];
  log?: Log;
  onJoining?(router: RouterState): void;
  onLeft?(id: string): void;
}

export async function startHaproxy(options: TestHaproxyOptions = {}): Promise<TestHaproxy> {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-haproxy-'));
  masters.push(async () => {
    await stopMaster(filesIn(folder), 0);
    rmSync(folder, { recursive: true, force: true });
  });
  return open(folder, await freePort(), await freePort(), options, new Map(), 1);
}

const filesIn = (folder: string) => haproxyFiles(join(folder, 'haproxy'), folder);

async function open(
  folder: string,
  port: number,
  tls: number,
  options: TestHaproxyOptions,
  table: Map<string, EnvironmentRoutes>,
  loadedVersion: number,
): Promise<TestHaproxy> {
  const {
    certificates = null,
    limits = {},
    redirect = null,
    trustedProxies = [],
    log = pino({ level: 'warn' }),
  } = options;
  const plane = await openHaproxy({
    program: 'haproxy',
    files: filesIn(folder),
    settings: {
      http: `127.0.0.1:${port}`,
      https: certificates && `127.0.0.1:${tls}`,
      redirectPort: redirect && (redirect.port ?? tls),
      threads: 2,
      limits: { ...defaultLimits, ...limits },
      drainS: 10,
      trustedProxies,
    },
    ports: { http: port, tls: certificates && tls },
    certificates,
    clock: systemClock,
    log,
  });
  let version = loadedVersion;
  let stopped: Promise<void> | null = null;
  const stop = () => (stopped ??= plane.stop(0));
  planes.push(stop);
  plane.observe({
    joining: async (router) => options.onJoining?.(router),
    catchUp: async () => {},
    moved: () => {},
    left: (id) => options.onLeft?.(id),
  });
  await plane.load(version, inOneBatch([...table.values()]));
  await plane.listen();
  const taken = new Map<string, Measurement>();
  const change = async (environments: EnvironmentRoutes[]) => {
    for (const routes of environments) table.set(routesKey(routes), routes);
    version++;
    plane.change(version, environments);
    await until('the change to be in force', () => plane.routers()[0]?.version === version);
    for (const { name } of environments.flatMap(({ hosts }) => hosts)) await certificateServed(name);
  };
  const certificateServed = async (name: string) => {
    if (certificates === null) return;
    const found = await certificates.find(name, null);
    const serial = found === null || found === 'current' ? null : found.id;
    plane.expireCertificates([name]);
    await until('the certificate to be served', async () => (await serialAt(tls, name)) === serial);
  };
  const takeMeasurements = () =>
    plane.takeMeasurements().flatMap(({ measurements, settle }) => {
      settle(true);
      return measurements;
    });
  return {
    plane,
    port,
    tls,
    files: filesIn(folder),
    change,
    certificateServed,
    takeMeasurements,
    stop: async (drainMs) => {
      await stop();
      await stopMaster(filesIn(folder), drainMs);
    },
    async counted(revision, project) {
      // The log is read a moment after a response has ended, and a line may come only after a silence.
      for (let quiet = 0; quiet < 8; quiet++) {
        for (const one of takeMeasurements()) {
          taken.set(`${one.project} ${one.revision} ${one.at}`, one);
          quiet = 0;
        }
        await new Promise((resolve) => setTimeout(resolve, 100));
      }
      const own = [...taken.values()].filter(
        (one) => one.revision === revision && (project === undefined || one.project === project),
      );
      const sum = (of: (one: Measurement) => number) => own.reduce((total, one) => total + of(one), 0);
      return {
        requests: sum(({ requests }) => requests),
        errors: sum(({ errors }) => errors),
        clientErrors: sum(({ clientErrors = 0 }) => clientErrors),
      };
    },
    async restart(other) {
      await stop();
      // A table's version never goes back, whichever process has it.
      return open(folder, port, tls, options, other ? byKey(other) : table, version + 1);
    },
  };
}

export function serialAt(port: number, servername: string): Promise<string | null> {
  return new Promise((resolve) => {
    const socket = connect({ port, host: '127.0.0.1', servername, rejectUnauthorized: false }, () => {
      resolve(socket.getPeerCertificate().serialNumber);
      socket.destroy();
    });
    socket.on('error', () => resolve(null));
  });
}

const byKey = (table: EnvironmentRoutes[]) => new Map(table.map((routes) => [routesKey(routes), routes]));

async function* inOneBatch(environments: EnvironmentRoutes[]): AsyncGenerator<EnvironmentRoutes[]> {
  yield environments;
}
