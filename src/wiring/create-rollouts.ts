// What carries out deployments: the router that visitors send requests to, and the reconciler behind it.
import type { Registry } from 'prom-client';
import type { Config } from '../config.ts';
import { ImageCollector } from '../deployments/image-collector.ts';
import { databaseLeases, onlyProcess } from '../deployments/reconcile/environment-leases.ts';
import { Reconciler } from '../deployments/reconcile/reconciler.ts';
import { UsageMeter } from '../deployments/usage-meter.ts';
import { rangeText } from '../lib/address.ts';
import { createLookup } from '../lib/dns-lookup.ts';
import type { Collector } from '../logs/log-collector.ts';
import type { Regions } from '../regions/regions.ts';
import { registryLogins } from '../registries/registry-logins.ts';
import { registryPolicy } from '../registries/registry-policy.ts';
import { listAccounts } from '../tokens/admin-token.ts';
import type { CertificateSource, DataPlane, RouterPorts } from '../traffic/data-plane.ts';
import { haproxyFilesOf } from '../traffic/haproxy/haproxy-files.ts';
import { inProcessPlane } from '../traffic/in-process-plane.ts';
import type { Measurement } from '../traffic/measurements.ts';
import { defaultLimits } from '../traffic/proxy/limits.ts';
import { createProxy } from '../traffic/proxy/proxy.ts';
import { TlsContexts } from '../traffic/proxy/tls-contexts.ts';
import { RegionReach } from '../traffic/region-reach.ts';
import { RouterAgent } from '../traffic/router-agent.ts';
import { deleteEndedRouters } from '../traffic/router-register.ts';
import { RouterWatch } from '../traffic/router-watch.ts';
import { DiskCertificates, routingKey } from '../traffic/worker/routing-files.ts';
import { WorkerPlane } from '../traffic/worker/worker-plane.ts';
import type { Addresses } from './addresses.ts';
import type { Common } from './common.ts';
import { routingDirOf } from './worker-settings.ts';

export interface Rollouts {
  /** Lines about regions whose instances the router of this process cannot reach. */
  unreachable(): string[];
  /** How many routers of this process have a routing table in force; null: it has none to do with. */
  countRouters(): number | null;
  start(): void;
  stop(): Promise<void>;
}

/** The router runs in worker processes, which a supervisor has started or will. */
export interface RouterWorkers {
  agentSocket: string;
  ports: RouterPorts;
}

interface RolloutParts {
  /** null: the router runs in this process. */
  workers: RouterWorkers | null;
  addresses: Addresses;
  regions: Regions;
  certificates: CertificateSource;
  onMeasured(router: string, measurements: Measurement[]): void;
  followLogs: Collector['follow'];
  takeLogs: Collector['take'];
  metrics: Registry;
}

export async function createRollouts(common: Common, config: Config, parts: RolloutParts): Promise<Rollouts> {
  const { db, dialect, clock, processId } = common;
  const { addresses, regions, certificates, workers, onMeasured } = parts;
  const leaseMs = config.routerLeaseS * 1000;
  if (dialect === 'sqlite') await deleteEndedRouters(db);
  const dataPlane = config.roles.includes('router') ? await openDataPlane(common, config, certificates, workers) : null;
  const router =
    dataPlane && new RouterAgent({ ...common, dataPlane, domain: config.routerDomain, leaseMs, onMeasured });
  if (router) addresses.router = await router.listen();
  const leases = dialect === 'sqlite' ? onlyProcess(db) : databaseLeases(db, processId, clock);
  const meter = new UsageMeter({ ...common, regions, holds: leases.holds });
  const images = new ImageCollector({
    ...common,
    regions,
    registry: parts.metrics,
    imagesKeptMs: config.imagesKeptHours * 3_600_000,
  });
  const reconciler = new Reconciler({
    ...common,
    regions,
    logins: registryLogins({ ...common, files: config.registryConfig }),
    // The first account is the one that runs the service. What others pulled, or built, is not for tenants.
    mayUseLocal: async (accountId) => (await listAccounts(db))[0]?.id === accountId,
    refuseRegistry: registryPolicy({ db, lookup: createLookup(), allowed: config.registryAllow }),
    leases,
    pullTimeoutS: config.pullTimeoutS,
    instancePorts: config.instancePorts,
    random: Math.random,
    routers: new RouterWatch({ db, clock, leaseMs }),
    onDiskFull: images.onDiskFull,
    followLogs: parts.followLogs,
    takeLogs: parts.takeLogs,
  });
  const reach = router && new RegionReach({ ...common, regions: config.regions.map(({ name }) => name) });
  return {
    unreachable: () => reach?.lines() ?? [],
    countRouters: () => dataPlane?.routers().length ?? null,
    start() {
      router?.start();
      reach?.start();
      if (!config.roles.includes('worker')) return;
      reconciler.start();
      meter.start();
      images.start();
    },
    async stop() {
      await images.stop();
      await meter.stop();
      await reconciler.stop();
      await reach?.stop();
      await router?.stop();
    },
  };
}

function openDataPlane(
  common: Common,
  config: Config,
  source: CertificateSource,
  workers: RouterWorkers | null,
): DataPlane | Promise<DataPlane> {
  if (config.haproxy !== null) return haproxyPlane(common, config, source, config.haproxy);
  return workers ? workerPlane(common, config, source, workers) : builtInProxy(common, config, source);
}

async function haproxyPlane(
  { clock, log }: Common,
  config: Config,
  certificates: CertificateSource,
  program: string,
): Promise<DataPlane> {
  const { host, routerPort, routerTlsPort, httpsRedirect } = config;
  const at = (port: number) => `${host.includes(':') ? `[${host}]` : host}:${port}`;
  // Imported here so that a service without HAProxy does not load it.
  const { openHaproxy } = await import('../traffic/haproxy/haproxy.ts');
  return openHaproxy({
    program,
    files: haproxyFilesOf(config.dataDir),
    settings: {
      http: at(routerPort),
      https: at(routerTlsPort),
      redirectPort: httpsRedirect && (httpsRedirect.port ?? routerTlsPort),
      threads: config.routerWorkers,
      limits: { ...defaultLimits, ...connectionLimits(config) },
      drainS: config.drainS,
      trustedProxies: config.trustedProxies.map(rangeText),
    },
    ports: { http: routerPort, tls: routerTlsPort },
    certificates,
    clock,
    log,
  });
}

const connectionLimits = (config: Config) => ({
  connections: config.routerConnections,
  connectionsPerAddress: config.routerConnectionsPerAddress,
});

function workerPlane(
  { log, seal }: Common,
  { dataDir }: Config,
  source: CertificateSource,
  { agentSocket, ports }: RouterWorkers,
): DataPlane {
  const routingDir = routingDirOf(dataDir);
  const disk = new DiskCertificates(routingDir, routingKey(seal));
  return new WorkerPlane({ socketPath: agentSocket, routingDir, ports, source, disk, log });
}

function builtInProxy({ clock, log, processId }: Common, config: Config, source: CertificateSource): DataPlane {
  const { host, routerPort, routerTlsPort, trustedProxies, httpsRedirect: redirect } = config;
  const certificates = new TlsContexts({ source, clock, log });
  return inProcessPlane({
    id: processId,
    proxy: createProxy({ clock, log, certificates, redirect, trustedProxies, limits: connectionLimits(config) }),
    http: { host, port: routerPort },
    tls: { host, port: routerTlsPort },
    expireCertificates: (names) => certificates.expire(names),
  });
}
