// Every part, built by hand, in order. `overrides` is the whole dependency injection.
import type { AddressInfo } from 'node:net';
import type { FastifyInstance } from 'fastify';
import { auditRoutes } from './audit/routes.ts';
import { createOrigin } from './catalogue/origin/origin.ts';
import { addressOf, type Config } from './config.ts';
import { getOpenApi } from './contract/service.ts';
import { lockDataDir, makeDataDir } from './data-dir.ts';
import { findInstallation } from './db/installation.ts';
import { deploymentRoutes } from './deployments/api/routes.ts';
import { chooseEngine } from './engines/choose.ts';
import { environmentRoutes } from './environments/routes.ts';
import { createGate } from './http/api/gate.ts';
import { databaseRateCells, memoryRateCells } from './http/api/rate-cells.ts';
import { type ServedRoute, serve } from './http/api/route.ts';
import { loadCompiler } from './http/api/validate.ts';
import { createMetrics } from './http/metrics.ts';
import { openApiDocument } from './http/reference/openapi.ts';
import { createServer, defaultTimeouts, type ServerTimeouts } from './http/server.ts';
import { mountConsole } from './http/web/console.ts';
import { mountServicePages } from './http/web/service-pages.ts';
import { mountSite } from './http/web/site.ts';
import { type Clock, systemClock } from './lib/clock.ts';
import { createIds } from './lib/ids.ts';
import { createLog, type Log } from './lib/log.ts';
import { environmentLifecycleRoutes } from './lifecycle/environments.ts';
import { projectLifecycleRoutes } from './lifecycle/projects.ts';
import { projectRoutes } from './projects/routes.ts';
import { Regions } from './regions/regions.ts';
import { regionRoutes } from './regions/routes.ts';
import { startSample } from './sample.ts';
import { connectProcesses } from './signals/processes.ts';
import { openStore, type Store } from './store.ts';
import { ensureAdminToken } from './tokens/admin.ts';
import { LastUsed } from './tokens/last-used.ts';
import { findTokenByHash } from './tokens/queries.ts';
import { tokenRoutes } from './tokens/routes.ts';
import { version } from './version.ts';
import { systemLookup } from './webhooks/sending/connect.ts';
import { type Addresses, createAddresses } from './wiring/addresses.ts';
import { type Alerts, createAlerts } from './wiring/alerts.ts';
import type { Common } from './wiring/common.ts';
import { createDomains, type Domains } from './wiring/domains.ts';
import { startHousekeeping } from './wiring/housekeeping.ts';
import { createNotifications, type NotificationOverrides, type Notifications } from './wiring/notifications.ts';
import { createRollouts, type Rollouts } from './wiring/rollouts.ts';

export interface Overrides extends NotificationOverrides {
  clock?: Clock;
  log?: Log;
  timeouts?: ServerTimeouts;
  /** Requests a minute per token: a benchmark needs more than anyone may have. */
  tokenLimit?: number;
}

export interface App {
  config: Config;
  log: Log;
  server: FastifyInstance;
  store: Store;
  lastUsed: LastUsed;
  /** The public address of the catalogue. */
  baseUrl(): string;
  /** The public address of the API, without /v1. */
  apiUrl(): string;
  /** Where deployed revisions answer; null: not in this process. */
  routerUrl: string | null;
  /** Where their domains answer with TLS; null: not in this process. */
  routerTlsPort: number | null;
  /** The admin token, if this start made it. */
  newAdminToken: string | null;
  /** What runs instances in each region, and why. */
  regionLines: string[];
  /** In order, and only once however often it is called. */
  stop(): Promise<void>;
}

/** What was started is stopped in reverse: when the app stops, or when a later part fails to start. */
export async function createApp(config: Config, overrides: Overrides = {}): Promise<App> {
  const undo: (() => unknown)[] = [];
  const unwind = async () => {
    for (const step of undo.reverse()) await step();
  };
  try {
    return await buildApp(config, overrides, undo, unwind);
  } catch (error) {
    await unwind();
    throw error;
  }
}

async function buildApp(
  config: Config,
  overrides: Overrides,
  undo: (() => unknown)[],
  unwind: () => Promise<void>,
): Promise<App> {
  const clock = overrides.clock ?? systemClock;
  const log = overrides.log ?? createLog({ level: config.logLevel, format: config.logFormat });
  const ids = createIds(clock);
  const store = await openStoreAlone(config, log, undo);
  const { db, dialect } = store;
  const common: Common = { ...store, ids, clock, log, processId: ids('run') };
  const admin = { db, ids, clock, dataDir: config.dataDir, configured: config.adminToken };
  const newAdminToken = await ensureAdminToken(admin);
  const { regions, lines } = await openRegions(config, common, undo);
  if (config.databaseUrl !== null) {
    const processes = connectProcesses({ ...common, databaseUrl: config.databaseUrl });
    undo.push(() => processes.stop());
  }

  const cells = dialect === 'sqlite' ? memoryRateCells() : databaseRateCells(db);
  const lastUsed = new LastUsed(clock);
  const findToken = (hash: string) => findTokenByHash(db, hash);
  const gate = createGate(findToken, cells, clock, (tokenId) => lastUsed.note(tokenId), overrides.tokenLimit);
  const metrics = createMetrics();
  const addresses = createAddresses(config);
  const alerts = createAlerts(common, config);
  const domains = createDomains(common, config, addresses, overrides.lookup ?? systemLookup);
  const rollouts = await createRollouts(common, config, addresses, regions, domains.certificates, alerts.measured);
  undo.push(() => rollouts.stop());
  undo.push(() => domains.stop());
  const notifications = createNotifications(common, config, overrides, metrics.observeAttempt);
  undo.push(() => notifications.stop());
  undo.push(() => alerts.stop());

  let listeningAt = addressOf(config.host, config.port);
  let stopping = false;
  const isStopping = () => stopping;
  const baseUrl = () => config.baseUrl ?? listeningAt;
  const apiUrl = () => config.apiUrl ?? baseUrl();
  const routes = config.roles.includes('api')
    ? apiRoutes(common, regions, addresses, rollouts, notifications, alerts, domains)
    : [];
  const timeouts = overrides.timeouts ?? defaultTimeouts;
  const { trustedProxies } = config;
  const server = createServer({ ...common, gate, metrics, apiUrl, timeouts, isStopping, routes, trustedProxies });
  mountServicePages(server, {
    db,
    metrics,
    figures: alerts.figures,
    caPem: domains.caPem,
    baseUrl,
    apiUrl,
    isStopping,
  });
  if (config.roles.includes('api')) mountConsole(server);
  const origin = config.roles.includes('catalogue') ? createOrigin(config.catalogueDir) : null;
  if (origin) mountSite(server.server, origin.handle);
  await server.listen({ host: config.host, port: config.port });
  listeningAt = addressOf(config.host, (server.server.address() as AddressInfo).port);

  setImmediate(loadCompiler); // before the first request needs it, after the service is ready
  rollouts.start();
  await notifications.start();
  alerts.start();
  await domains.start();
  const housekeeping = startHousekeeping({
    ...common,
    cells,
    lastUsed,
    regions,
    alertsKeptDays: config.eventRetentionDays,
  });
  undo.push(() => housekeeping.stop());
  const sample = origin && config.sample ? startSample(config, clock, log) : null;
  undo.push(() => sample?.stop());

  return {
    config,
    log,
    server,
    store,
    lastUsed,
    baseUrl,
    apiUrl,
    routerUrl: addresses.router && addresses.environmentUrl('*'),
    routerTlsPort: addresses.router?.tls ?? null,
    newAdminToken,
    regionLines: lines,
    stop: once(async () => {
      stopping = true;
      notifications.closeStreams();
      await server.close();
      await origin?.close();
      await unwind();
    }),
  };
}

function once(work: () => Promise<void>): () => Promise<void> {
  let done: Promise<void> | undefined;
  return () => {
    done ??= work();
    return done;
  };
}

/** SQLite is for one process: whoever has the data directory keeps it until the end. */
async function openStoreAlone(config: Config, log: Log, undo: (() => unknown)[]): Promise<Store> {
  if (config.databaseUrl === null) {
    makeDataDir(config.dataDir);
    const lock = lockDataDir(config.dataDir);
    undo.push(() => lock.release());
  }
  const store = await openStore(config, (error) => log.warn({ err: error }, 'database connection lost'));
  undo.push(() => store.close());
  return store;
}

async function openRegions(config: Config, { db, clock }: Common, undo: (() => unknown)[]) {
  const settings = { installation: await findInstallation(db), registryConfig: config.registryConfig };
  const chosen = await Promise.all(
    config.regions.map(async ({ name, engine }) => ({ name, ...(await chooseEngine(name, engine, settings)) })),
  );
  const regions = new Regions(chosen, clock);
  undo.push(() => regions.close());
  await regions.check();
  return { regions, lines: chosen.map(({ name, why }) => `region ${name}: ${why}`) };
}

function apiRoutes(
  common: Common,
  regions: Regions,
  addresses: Addresses,
  rollouts: Rollouts,
  notifications: Notifications,
  alerts: Alerts,
  domains: Domains,
): ServedRoute[] {
  const openApi = openApiDocument(version);
  const parts = { ...common, regions, kick: rollouts.kick, urlOf: addresses.environmentUrl };
  return [
    ...projectRoutes(parts),
    ...projectLifecycleRoutes(parts),
    ...environmentRoutes(parts),
    ...environmentLifecycleRoutes(parts),
    ...deploymentRoutes(parts),
    ...notifications.routes,
    ...alerts.routes,
    ...domains.routes,
    ...tokenRoutes(parts),
    ...regionRoutes(regions),
    ...auditRoutes(),
    serve(getOpenApi, async () => ({ body: openApi })),
  ];
}
