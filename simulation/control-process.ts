// A control process, built from the same parts as the app: the API, the reconciler, the dispatcher of deliveries, the
// watcher of alerts, and what is done now and then.

import type { FastifyReply, FastifyRequest } from 'fastify';
import { Registry } from 'prom-client';
import { Quotas } from '../src/accounts/quotas.ts';
import { alertRoutes } from '../src/alerts/alert-routes.ts';
import { Watcher } from '../src/alerts/watcher.ts';
import type { Db } from '../src/db/database.ts';
import { postgresClock, singleProcessClock } from '../src/db/database-clock.ts';
import { RetentionClock } from '../src/db/retention-clock.ts';
import { deploymentRoutes } from '../src/deployments/deployment-routes.ts';
import { databaseLeases, onlyProcess } from '../src/deployments/reconcile/environment-leases.ts';
import { Reconciler } from '../src/deployments/reconcile/reconciler.ts';
import { environmentRoutes } from '../src/environments/environment-routes.ts';
import { carryOut } from '../src/http/api/carry-out.ts';
import { memoryRateCells } from '../src/http/api/rate-cells.ts';
import type { ServedRoute } from '../src/http/api/served-route.ts';
import { toApiError } from '../src/http/error-responses.ts';
import { createIds } from '../src/lib/ids.ts';
import type { Log } from '../src/lib/log.ts';
import { createLoops } from '../src/lib/loops.ts';
import { createSeal } from '../src/lib/seal.ts';
import { environmentLifecycleRoutes } from '../src/lifecycle/environment-lifecycle.ts';
import { projectLifecycleRoutes } from '../src/lifecycle/project-lifecycle.ts';
import { projectRoutes } from '../src/projects/project-routes.ts';
import { Regions } from '../src/regions/regions.ts';
import { registryLogins } from '../src/registries/registry-logins.ts';
import { subscribe } from '../src/signals/signals.ts';
import { LastUsed } from '../src/tokens/token-queries.ts';
import { RouterAgent } from '../src/traffic/router-agent.ts';
import { deleteEndedRouters } from '../src/traffic/router-register.ts';
import { RouterWatch } from '../src/traffic/router-watch.ts';
import { sweepOld, sweepStopped } from '../src/webhooks/delivery-sweep.ts';
import { DeliveryDispatcher } from '../src/webhooks/dispatcher.ts';
import { sqliteQueue } from '../src/webhooks/sqlite-queue.ts';
import { webhookRoutes } from '../src/webhooks/webhook-routes.ts';
import type { Common } from '../src/wiring/common.ts';
import { startHousekeeping } from '../src/wiring/housekeeping.ts';
import { startRetention } from '../src/wiring/retention.ts';
import { SimulatedDataPlane } from './data-plane.ts';
import type { SimulatedEngine } from './engine.ts';
import type { Receivers } from './receivers.ts';
import type { Visits } from './visits.ts';
import type { Machine, World } from './world.ts';

export const seal = createSeal(Buffer.alloc(32, 7));
export const accountId = 'acc_00000000000000000000000000';
export const tokenId = 'tok_00000000000000000000000000';
const caller = { tokenId, accountId, scopes: new Set(['*'] as const), projectIds: null };

export interface ProcessParts {
  machine: Machine;
  db: Db;
  log: Log;
  /** Whether other processes use the database too, as they may on PostgreSQL. */
  isShared: boolean;
  leases: LeaseTimes;
  /** How many ports there are for instances. */
  ports: number;
  visits: Visits;
}

export interface LeaseTimes {
  environmentMs: number;
  /** A router that is not heard of for this long holds up nothing any more. */
  routerMs: number;
}

export interface ApiRequest {
  /** The name of its declaration. */
  route: string;
  params?: Record<string, string>;
  body?: unknown;
  idempotencyKey?: string;
}

export interface ApiResponse {
  status: number;
  // biome-ignore lint/suspicious/noExplicitAny: answers have every shape
  body: any;
  version: number | null;
}

export interface ControlProcess {
  machine: Machine;
  request(request: ApiRequest): Promise<ApiResponse>;
}

/** A process remembers what it has counted. */
const quotasWithoutLimits = () =>
  new Quotas({
    setting: { all: {}, accounts: new Map() },
    projectsPerAccount: 0,
    ports: 10_000,
    requestsPerMinute: 1_000_000,
  });

async function commonOf({ machine, db, log, isShared }: ProcessParts): Promise<Common> {
  const ids = createIds(machine.clock);
  machine.processId = ids('run');
  const { processId } = machine;
  const loops = createLoops(log);
  const own = machine.clock;
  const clock = isShared ? (await postgresClock({ db, clock: own, log, loops })).clock : singleProcessClock(own);
  if (!isShared) machine.deadlinesAheadMs = machine.clockOffsetMs;
  const retention = new RetentionClock(db, clock);
  return { db, dialect: 'sqlite', seal, ids, clock, retention, log, loops, quotas: quotasWithoutLimits(), processId };
}

/** So few deployments that they are swept while others are under way. */
const keptInSimulation = {
  eventRetentionDays: 30,
  deploymentRetentionDays: 30,
  deploymentRetentionCount: 20,
  auditRetentionDays: 30,
};

export async function startControlProcess(
  parts: ProcessParts,
  engines: readonly SimulatedEngine[],
  receivers: Receivers,
): Promise<ControlProcess> {
  const { machine, isShared, leases } = parts;
  const common = await commonOf(parts);
  const regions = new Regions(
    engines.map((engine) => ({ name: engine.region, engine: engine.from(machine) })),
    machine.clock,
    common.log,
  );
  await Promise.all(engines.map(({ region }) => regions.check(region)));
  if (!isShared) await deleteEndedRouters(common.db);
  const reconciler = new Reconciler({
    ...common,
    regions,
    logins: registryLogins({ ...common, files: [] }),
    leases: isShared
      ? databaseLeases(common.db, common.processId, common.clock, leases.environmentMs)
      : onlyProcess(common.db),
    pullTimeoutS: 900,
    instancePorts: { first: 20_000, last: 19_999 + parts.ports },
    random: Math.random,
    routers: new RouterWatch({ ...common, leaseMs: leases.routerMs }),
    probe: (target) => engines[0]!.probe(machine, target),
  });
  reconciler.start();
  await startDeliveries(common, machine, receivers, isShared);
  new Watcher(common).start();
  const lastUsed = new LastUsed(machine.clock);
  startHousekeeping({ ...common, cells: memoryRateCells(), lastUsed, regions });
  startRetention({ ...common, registry: new Registry() }, keptInSimulation);
  const routes = routesOf(common, regions);
  return { machine, request: (request) => serve(common, routes, request) };
}

async function startDeliveries(
  common: Common,
  machine: Machine,
  receivers: Receivers,
  isShared: boolean,
): Promise<void> {
  const { db, clock, retention, loops, processId: id } = common;
  const queue = sqliteQueue(db);
  const sweeper = loops.start({
    name: 'clearing away deliveries',
    intervalMs: 60_000,
    step: async () => {
      await sweepStopped(db, clock.now());
      await sweepOld(db, (await retention.now()) - 30 * 86_400_000);
    },
  });
  const dispatcher = new DeliveryDispatcher({
    ...common,
    id,
    // Where other processes may hold leases, none is released at the start.
    queue: isShared ? { ...queue, recover: async () => {} } : queue,
    sender: receivers.senderOf(machine),
    signatureHeader: 'X-Service-Signature',
    userAgent: 'Sluice/simulation',
    random: Math.random,
    schedule: [500, 1000, 2000, 4000, 8000, 16_000, 30_000, 60_000, 60_000, 60_000, 60_000, 60_000],
    onAttempt: () => {},
    onDisabled: () => sweeper.wake(),
  });
  await dispatcher.start();
  const claim = () => dispatcher.wake();
  subscribe(db, 'events', claim);
  subscribe(db, 'deliveries', claim);
  subscribe(db, 'removals', () => sweeper.wake());
}

export interface RouterProcess {
  machine: Machine;
  dataPlane: SimulatedDataPlane;
}

export async function startRouterProcess(world: World, parts: ProcessParts): Promise<RouterProcess> {
  const { machine, leases } = parts;
  const common = await commonOf(parts);
  const dataPlane = new SimulatedDataPlane(world, machine, common.processId, parts.visits);
  const agent = new RouterAgent({ ...common, dataPlane, domain: 'sim.test', leaseMs: leases.routerMs });
  await agent.listen();
  agent.start();
  return { machine, dataPlane };
}

function routesOf(common: Common, regions: Regions): Map<string, ServedRoute> {
  const parts = { ...common, regions, urlOf: (host: string) => `http://${host}.sim.test`, maxProjects: 0 };
  const routes = [
    ...projectRoutes(parts),
    ...projectLifecycleRoutes(parts),
    ...environmentRoutes(parts),
    ...environmentLifecycleRoutes(parts),
    ...deploymentRoutes(parts),
    ...alertRoutes(parts),
    ...webhookRoutes({ ...parts, policy: { allowLoopback: true, allowed: [] }, lookup: async () => [] }),
  ];
  return new Map(routes.map((route) => [route.declaration.name, route]));
}

/** As the server does it for a request that has passed the gate. */
async function serve(
  common: Common,
  routes: Map<string, ServedRoute>,
  { route, params = {}, body, idempotencyKey }: ApiRequest,
): Promise<ApiResponse> {
  const served = routes.get(route);
  if (!served) throw new Error(`there is no route ${route}`);
  const { method, path } = served.declaration;
  const url = `/v1${path.replaceAll(/\{(\w+)\}/g, (_, name) => params[name]!)}`;
  const request = {
    id: common.ids('req'),
    ip: '127.0.0.1',
    method,
    url,
    params,
    query: {},
    body,
    caller,
    headers: idempotencyKey === undefined ? {} : { 'idempotency-key': idempotencyKey },
    routeOptions: { url: path },
  };
  const response: ApiResponse = { status: 200, body: null, version: null };
  const reply = {
    code: (status: number) => {
      response.status = status;
    },
    header(name: string, value: string) {
      if (name === 'etag') response.version = Number(/\d+/.exec(value)?.[0]);
      return reply;
    },
    send(text?: string) {
      response.body = text ? JSON.parse(text) : null;
    },
  };
  try {
    const platform = { ...common, apiUrl: () => 'http://sim.test' };
    await carryOut(platform, served, request as unknown as FastifyRequest, reply as unknown as FastifyReply);
    return response;
  } catch (thrown) {
    const error = toApiError(thrown);
    if (error.code === 'internal_error') common.log.error({ err: thrown }, `${route} failed`);
    return { status: error.status, body: { error: { code: error.code, message: error.message } }, version: null };
  }
}
