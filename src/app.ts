// Every part, built by hand, in order. `overrides` is the whole dependency injection.
import type { AddressInfo } from 'node:net';
import type { FastifyInstance } from 'fastify';
import { ensureAdminToken } from './accounts/admin.ts';
import { auditRoutes } from './audit/routes.ts';
import { createOrigin } from './catalogue/origin.ts';
import { addressOf, type Config } from './config.ts';
import { getOpenApi } from './contract/service.ts';
import { lockDataDir, makeDataDir } from './data-dir.ts';
import { announce } from './db/after-commit.ts';
import { findInstallation } from './db/installation.ts';
import { databaseLeases, onlyProcess } from './deployments/leases.ts';
import type { EnvironmentKey } from './deployments/queries.ts';
import { Reconciler } from './deployments/reconciler.ts';
import { deploymentRoutes } from './deployments/routes.ts';
import { chooseEngine } from './engines/choose.ts';
import { environmentRoutes } from './environments/routes.ts';
import { startBell } from './events/bell.ts';
import { eventRoutes } from './events/routes.ts';
import { EventStreams } from './events/stream.ts';
import { createGate } from './http/gate.ts';
import { sweepIdempotencyKeys } from './http/idempotency.ts';
import { createMetrics } from './http/metrics.ts';
import { openApiDocument } from './http/openapi.ts';
import { databaseRateCells, memoryRateCells } from './http/rate-cells.ts';
import { serve } from './http/route.ts';
import { createServer, defaultTimeouts, type ServerTimeouts } from './http/server.ts';
import { mountServicePages } from './http/service-pages.ts';
import { mountSite } from './http/site.ts';
import { loadCompiler } from './http/validate.ts';
import { isLoopback, parseAddress } from './lib/address.ts';
import { type Clock, systemClock } from './lib/clock.ts';
import { createIds } from './lib/ids.ts';
import { createLog, type Log } from './lib/log.ts';
import { type Loop, startLoop } from './lib/loop.ts';
import { projectRoutes } from './projects/routes.ts';
import { Regions } from './regions/regions.ts';
import { regionRoutes } from './regions/routes.ts';
import { startSample } from './sample.ts';
import { openStore, type Store } from './store.ts';
import { LastUsed } from './tokens/last-used.ts';
import { findTokenByHash } from './tokens/queries.ts';
import { tokenRoutes } from './tokens/routes.ts';
import { startProxy } from './traffic/proxy.ts';
import { Router, routerPollMs } from './traffic/router.ts';
import { version } from './version.ts';
import { type Lookup, systemLookup } from './webhooks/connect.ts';
import { webhookRoutes } from './webhooks/routes.ts';
import { Deliveries, type WebhookTimings } from './webhooks/webhooks.ts';

export interface Overrides {
  clock?: Clock;
  log?: Log;
  timeouts?: ServerTimeouts;
  /** Requests a minute per token: a benchmark needs more than anyone may have. */
  tokenLimit?: number;
  webhookTimings?: WebhookTimings;
  /** How names of webhooks become addresses. */
  lookup?: Lookup;
}

export interface App {
  config: Config;
  log: Log;
  server: FastifyInstance;
  store: Store;
  lastUsed: LastUsed;
  /** Where the API answers, without /v1. */
  apiUrl(): string;
  /** Where deployed revisions answer; null: not in this process. */
  routerUrl: string | null;
  /** The admin token, if this start made it. */
  newAdminToken: string | null;
  /** What runs instances in each region, and why. */
  regionLines: string[];
  stop(): Promise<void>;
}

export async function createApp(config: Config, overrides: Overrides = {}): Promise<App> {
  const clock = overrides.clock ?? systemClock;
  const log = overrides.log ?? createLog({ level: config.logLevel, format: config.logFormat });
  const ids = createIds(clock);
  const undo: (() => unknown)[] = [];
  const unwind = async () => {
    for (const step of undo.reverse()) await step();
  };

  try {
    if (config.databaseUrl === null) {
      makeDataDir(config.dataDir);
      const lock = lockDataDir(config.dataDir);
      undo.push(() => lock.release());
    }
    const store = await openStore(config, (error) => log.warn({ err: error }, 'database connection lost'));
    undo.push(() => store.close());
    const { db, seal, dialect } = store;
    const newAdminToken = await ensureAdminToken({
      db,
      ids,
      clock,
      dataDir: config.dataDir,
      configured: config.adminToken,
    });

    const engineSettings = { installation: await findInstallation(db), registryConfig: config.registryConfig };
    const chosen = await Promise.all(
      config.regions.map(async ({ name, engine }) => ({ name, ...(await chooseEngine(name, engine, engineSettings)) })),
    );
    const regions = new Regions(chosen, clock);
    undo.push(() => regions.close());
    await regions.check();

    const cells = dialect === 'sqlite' ? memoryRateCells() : databaseRateCells(db);
    const lastUsed = new LastUsed(clock);
    const gate = createGate(
      (hash) => findTokenByHash(db, hash),
      cells,
      clock,
      (tokenId) => lastUsed.note(tokenId),
      overrides.tokenLimit,
    );

    let listeningAt = addressOf(config.host, config.port);
    let stopping = false;
    const apiUrl = () => config.apiUrl ?? listeningAt;
    const processId = ids('run');
    const router = config.roles.includes('router')
      ? new Router({
          db,
          clock,
          log,
          dataPlane: await startProxy({ host: config.host, port: config.routerPort, clock, log }),
          domain: config.routerDomain,
          id: processId,
        })
      : null;
    if (router) undo.push(() => router.stop());
    const urlOf = (host: string) => `http://${host}.${config.routerDomain}:${router?.port() ?? config.routerPort}`;
    const reconciler = new Reconciler({
      db,
      clock,
      ids,
      log,
      seal,
      regions,
      leases: dialect === 'sqlite' ? onlyProcess : databaseLeases(db, processId, clock),
      settleMs: dialect === 'sqlite' ? routerPollMs / 2 : 2 * routerPollMs,
      onRouting: () => router?.wake(),
    });
    const kick = (key: EnvironmentKey) => {
      reconciler.kick(key);
      router?.wake();
    };
    const changed = () => {
      reconciler.kickSweep();
      router?.wake();
    };
    const openApi = openApiDocument(version);
    const metrics = createMetrics();
    const streams = new EventStreams({ db, dialect, clock, log });
    const lookup = overrides.lookup ?? systemLookup;
    const policy = { allowLoopback: listensOnLoopback(config.host), allowed: config.webhookAllowCidrs };
    const deliveries = new Deliveries({
      db,
      dialect,
      clock,
      log,
      seal,
      policy,
      lookup,
      signatureHeader: config.signatureHeader,
      userAgent: `Sluice/${version}`,
      id: processId,
      retentionDays: config.eventRetentionDays,
      timings: overrides.webhookTimings ?? {},
      onAttempt: metrics.observeAttempt,
    });
    const bell = startBell({
      db,
      databaseUrl: config.databaseUrl,
      id: processId,
      log,
      heard() {
        deliveries.wake();
        streams.wake();
      },
    });
    undo.push(() => bell.stop());

    const server = createServer({
      db,
      seal,
      ids,
      clock,
      log,
      gate,
      metrics,
      apiUrl,
      timeouts: overrides.timeouts ?? defaultTimeouts,
      isStopping: () => stopping,
      routes: [
        ...projectRoutes({ ids, clock, regions, changed }),
        ...environmentRoutes({ ids, clock, seal, regions, urlOf, kick }),
        ...deploymentRoutes({ ids, clock, regions, kick }),
        ...webhookRoutes({
          ids,
          clock,
          seal,
          dialect,
          policy,
          lookup,
          wake: () => announce(db, 'event'),
          sweep: () => deliveries.sweep(),
        }),
        ...eventRoutes({ dialect, clock, streams }),
        ...tokenRoutes({ ids, clock }),
        ...regionRoutes(regions),
        ...auditRoutes(),
        serve(getOpenApi, async () => ({ body: openApi })),
      ],
    });
    mountServicePages(server, { db, metrics, apiUrl, isStopping: () => stopping });
    const origin = config.roles.includes('catalogue') ? createOrigin(config.catalogueDir) : null;
    if (origin) mountSite(server.server, origin.handle);
    await server.listen({ host: config.host, port: config.port });
    listeningAt = addressOf(config.host, (server.server.address() as AddressInfo).port);

    setImmediate(loadCompiler); // before the first request needs it, after the service is ready
    const sample = origin && config.sample ? startSample(config, clock, log) : null;
    undo.push(() => sample?.stop());
    router?.start();
    if (config.roles.includes('worker')) {
      reconciler.start();
      undo.push(() => reconciler.stop());
      await deliveries.start();
      undo.push(() => deliveries.stop());
    }
    const loops = startLoops(store, { cells, lastUsed, regions, clock, log });
    return {
      config,
      log,
      server,
      store,
      lastUsed,
      apiUrl,
      routerUrl: router && `http://*.${config.routerDomain}:${router.port()}`,
      newAdminToken,
      regionLines: chosen.map(({ name, why }) => `region ${name}: ${why}`),
      async stop() {
        stopping = true;
        streams.stop();
        await server.close();
        await origin?.close();
        await Promise.all(loops.map((loop) => loop.stop()));
        await lastUsed.flush(db).catch((error) => log.warn({ err: error }, 'last use of tokens not written'));
        await unwind();
      },
    };
  } catch (error) {
    await unwind();
    throw error;
  }
}

/** Who can reach the service can reach what runs beside it anyway. */
function listensOnLoopback(host: string): boolean {
  const address = parseAddress(host);
  return host === 'localhost' || (address !== null && isLoopback(address));
}

interface LoopParts {
  cells: { sweep(nowMs: number): Promise<void> };
  lastUsed: LastUsed;
  regions: Regions;
  clock: Clock;
  log: Log;
}

function startLoops({ db }: Store, { cells, lastUsed, regions, clock, log }: LoopParts): Loop[] {
  const loop = (name: string, intervalMs: number, step: () => Promise<void>) =>
    startLoop({ intervalMs, step, onError: (error) => log.error({ err: error, loop: name }, 'a loop failed') });
  return [
    loop('last use of tokens', 10_000, () => lastUsed.flush(db)),
    loop('rate limit cells', 60_000, () => cells.sweep(clock.now())),
    loop('idempotency keys', 600_000, () => sweepIdempotencyKeys(db, clock.now())),
    loop('region health', 2_000, () => regions.check()),
  ];
}
