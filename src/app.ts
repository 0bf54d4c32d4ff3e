// Builds the control plane: every part by hand, in order. `overrides` is the whole dependency injection.
import type { FastifyInstance } from 'fastify';
import { Quotas } from './accounts/quotas.ts';
import type { Config } from './config.ts';
import { openDatabaseClock } from './db/database-clock.ts';
import { isPooled } from './db/postgres-url.ts';
import { RetentionClock } from './db/retention-clock.ts';
import { type ResolveTxt, systemResolveTxt } from './domains/dns-checks.ts';
import type { Engine } from './engines/engine.ts';
import { accountFactor, accountKey, createGate, tokenLimit } from './http/api/gate.ts';
import { databaseRateCells, memoryRateCells } from './http/api/rate-cells.ts';
import { weighed } from './http/api/rate-limit.ts';
import { createMetrics } from './http/http-metrics.ts';
import { defaultTimeouts, type ServerTimeouts } from './http/server.ts';
import { type Clock, systemClock, type Timers } from './lib/clock.ts';
import { hostOf, type ListenAt } from './lib/connections.ts';
import { createIds } from './lib/ids.ts';
import { createLog, type Log } from './lib/log.ts';
import { createLoops, type Loops } from './lib/loops.ts';
import type { ProcessLock } from './lib/process-lock.ts';
import { StopSteps } from './lib/stop-steps.ts';
import { startSample } from './sample.ts';
import { connectProcesses } from './signals/process-signals.ts';
import { lockDataDir, lockDataDirWhenFree, openStoreWhenReachable, type Store } from './store.ts';
import { ensureAdminToken } from './tokens/admin-token.ts';
import { findTokenOf } from './tokens/console-sessions.ts';
import { LastUsed } from './tokens/token-queries.ts';
import { systemLookup } from './webhooks/receiver-addresses.ts';
import { createAddresses } from './wiring/addresses.ts';
import type { Common } from './wiring/common.ts';
import { createDomains } from './wiring/create-domains.ts';
import { createLogs } from './wiring/create-logs.ts';
import { createAlerts, createNotifications, type NotificationOverrides } from './wiring/create-notifications.ts';
import { createRollouts, type RouterWorkers } from './wiring/create-rollouts.ts';
import { apiRoutes, createWeb, type Web } from './wiring/create-web.ts';
import { startHousekeeping } from './wiring/housekeeping.ts';
import { openRegions } from './wiring/open-regions.ts';
import { startRetention } from './wiring/retention.ts';

export interface Overrides extends NotificationOverrides {
  /** A socket that is open already, in place of the address of the settings. */
  apiSocket?: ListenAt;
  clock?: Clock;
  log?: Log;
  timeouts?: ServerTimeouts;
  /** What the background loops wait with. */
  timers?: Timers;
  /** Requests a minute per token: a benchmark needs more than anyone may have. */
  tokenLimit?: number;
  /** How TXT records are found. */
  resolveTxt?: ResolveTxt;
  /** Whether the stand-in's instances end with this process. */
  standinInProcess?: boolean;
  /** By region, in place of what the settings name. */
  engines?: Record<string, Engine>;
  /** The router runs in these processes; without it, in this one. */
  routerWorkers?: RouterWorkers;
}

export interface App {
  config: Config;
  /** What all its parts go by. */
  clock: Clock;
  log: Log;
  /** The background loops, and which of them are stuck. */
  loops: Loops;
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
  /**
   * Ends what only one process may do and gives up the data directory, so that the next process can start on it. Requests
   * under way go on, with their database. `moveOver`: clients are to come back to the next process; otherwise their new
   * requests get 503.
   */
  release(how: { moveOver: boolean }): Promise<void>;
  /** Releases, then ends when the requests under way have ended. Once, however often it is called. */
  stop(): Promise<void>;
}

/** How it ends. */
interface Ending {
  /** What only one process may do. */
  work: StopSteps;
  /** What requests under way need. */
  rest: StopSteps;
  lock: ProcessLock | null;
  clients: { moveOver(): Promise<void>; refuse(): void } | null;
}

export async function createApp(config: Config, overrides: Overrides = {}): Promise<App> {
  const log = overrides.log ?? createLog({ level: config.logLevel, format: config.logFormat });
  const { timers } = overrides;
  const ending: Ending = {
    work: new StopSteps(log, timers),
    rest: new StopSteps(log, timers),
    lock: null,
    clients: null,
  };
  const release = once(async (moveOver: boolean) => {
    if (!moveOver) ending.clients?.refuse();
    await ending.work.run();
    if (moveOver) await ending.clients?.moveOver();
    ending.lock?.release();
  });
  const stop = async () => {
    await release(false);
    await ending.rest.run();
  };
  try {
    const app = await buildApp(config, { ...overrides, log }, ending);
    return { ...app, release: ({ moveOver }) => release(moveOver), stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

type Built = Omit<App, 'release' | 'stop'>;

async function buildApp(config: Config, overrides: Overrides & { log: Log }, ending: Ending): Promise<Built> {
  const { log, clock: ownClock = systemClock } = overrides;
  const { work, rest } = ending;
  const loops = createLoops(log, overrides.timers);
  const ids = createIds(ownClock);
  const isSupervised = overrides.apiSocket !== undefined;
  const store = await openStoreAlone(config, isSupervised, log, ending);
  const { db, dialect } = store;
  const { clock, stop: stopClock } = await openDatabaseClock(dialect, { db, clock: ownClock, log, loops });
  rest.add('clock', stopClock);
  const retention = new RetentionClock(db, clock);
  const quotas = new Quotas({
    setting: config.quotas,
    projectsPerAccount: config.projectsPerAccount,
    ports: config.instancePorts.last - config.instancePorts.first + 1,
    requestsPerMinute: accountFactor * (overrides.tokenLimit ?? tokenLimit),
  });
  const common: Common = { ...store, ids, clock, retention, log, loops, quotas, processId: ids('run') };
  const admin = { db, ids, clock, dataDir: config.dataDir, configured: config.adminToken };
  const newAdminToken = config.roles.includes('api') ? await ensureAdminToken(admin) : null;
  const { regions, lines } = await openRegions(config, common, overrides);
  rest.add('regions', () => regions.close());
  await regions.checkAll();
  connectToOthers(common, config, rest);

  const addresses = createAddresses(config);
  const metrics = createMetrics();
  const alerts = createAlerts(common, config);
  const domains = createDomains(common, config, addresses, {
    resolve: overrides.lookup ?? systemLookup,
    resolveTxt: overrides.resolveTxt ?? systemResolveTxt,
  });
  const logs = createLogs(common, config, regions, metrics.registry);
  rest.add('log readers', () => logs.close());
  const rollouts = await createRollouts(common, config, {
    workers: overrides.routerWorkers ?? null,
    addresses,
    regions,
    certificates: domains.certificates,
    onMeasured: alerts.measured,
    followLogs: logs.follow,
    takeLogs: logs.take,
    metrics: metrics.registry,
  });
  work.add('rollouts', () => rollouts.stop());
  work.add('logs', () => logs.stop());
  work.add('domains', () => domains.stop());
  const notifications = createNotifications(common, config, overrides, metrics.observeAttempt);
  work.add('webhooks', () => notifications.stop());
  work.add('alerts', () => alerts.stop());

  const { gate, cells, lastUsed, requestsOf } = createAccess(common, overrides.tokenLimit);
  const web = createWeb(common, config, {
    gate,
    metrics,
    timeouts: overrides.timeouts ?? defaultTimeouts,
    routes: config.roles.includes('api')
      ? apiRoutes({ ...common, requestsOf }, regions, addresses, config, logs.stored, [
          notifications,
          alerts,
          domains,
          logs,
        ])
      : [],
    deploymentMetrics: alerts.deploymentMetrics,
    remarks: rollouts.unreachable,
    countRouters: rollouts.countRouters,
    caPem: domains.caPem,
  });
  await web.listen(overrides.apiSocket ?? { host: config.host, port: config.port });
  notifications.listensAt(hostOf(web.server.server));
  rest.add('requests under way', () => web.finish(config.drainS * 1000), (config.drainS + 20) * 1000);
  ending.clients = leaving(web, {
    closeStreams() {
      notifications.closeStreams();
      logs.closeStreams();
    },
  });

  rollouts.start();
  logs.start();
  await notifications.start();
  alerts.start();
  await domains.start();
  const housekeeping = startHousekeeping({
    ...common,
    cells,
    lastUsed,
    regions,
  });
  work.add('housekeeping', () => housekeeping.stop());
  const retentionLoops = startRetention({ ...common, registry: metrics.registry }, config);
  work.add('retention', () => retentionLoops.stop());
  const needsSample = config.roles.includes('catalogue') && config.sample;
  const sample = needsSample ? startSample(config, clock, log) : null;
  work.add('sample', () => sample?.stop());

  return {
    config,
    clock,
    log,
    loops,
    server: web.server,
    store,
    lastUsed,
    baseUrl: web.baseUrl,
    apiUrl: web.apiUrl,
    routerUrl: addresses.router && addresses.environmentUrl('*'),
    routerTlsPort: addresses.router?.tls ?? null,
    newAdminToken,
    regionLines: lines,
  };
}

function once<A>(work: (argument: A) => Promise<void>): (argument: A) => Promise<void> {
  let done: Promise<void> | undefined;
  return (argument) => {
    done ??= work(argument);
    return done;
  };
}

/** Event streams are closed last: their clients come back at once, and must not come back to this process. */
function leaving(web: Web, streams: { closeStreams(): void }): Ending['clients'] {
  return {
    async moveOver() {
      await web.moveOver();
      streams.closeStreams();
    },
    refuse() {
      web.refuse();
      streams.closeStreams();
    },
  };
}

/** Who may call the API, and how often. */
function createAccess({ db, dialect, seal, clock, quotas }: Common, limit: number | undefined) {
  const cells = dialect === 'sqlite' ? memoryRateCells() : databaseRateCells(db);
  const lastUsed = new LastUsed(clock);
  const gate = createGate(
    findTokenOf({ db, seal, clock }),
    cells,
    clock,
    (tokenId) => lastUsed.note(tokenId),
    (accountId) => quotas.limitOf(accountId, 'requests_per_minute'),
    limit,
  );
  const requestsOf = async (accountId: string) => {
    const nowMs = clock.now();
    return weighed(await cells.read(accountKey(accountId), nowMs), nowMs);
  };
  return { gate, cells, lastUsed, requestsOf };
}

/** What happens in one process is told to the others, on a connection that needs a session of its own. */
function connectToOthers(common: Common, { databaseUrl, databaseDirectUrl }: Config, stopSteps: StopSteps): void {
  if (databaseUrl === null) return;
  if (databaseDirectUrl === null && isPooled(databaseUrl)) {
    common.log.warn('without SLUICE_DATABASE_DIRECT_URL, changes of other processes are noticed a second later');
    return;
  }
  const processes = connectProcesses({ ...common, databaseUrl: databaseDirectUrl ?? databaseUrl });
  stopSteps.add('signals', () => processes.stop());
}

async function openStoreAlone(config: Config, isSupervised: boolean, log: Log, ending: Ending): Promise<Store> {
  const { dataDir } = config;
  if (config.databaseUrl === null)
    ending.lock = isSupervised ? await lockDataDirWhenFree(dataDir, log) : lockDataDir(dataDir);
  const store = await openStoreWhenReachable(config, log);
  ending.rest.add('database', () => store.close());
  return store;
}
