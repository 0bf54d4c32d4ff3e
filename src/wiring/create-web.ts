// What the service's own port serves: the API, the reference, health and metrics, the console, and the catalogue.

import type { Server } from 'node:http';
import type { FastifyInstance } from 'fastify';
import { accountRoutes } from '../accounts/account-routes.ts';
import { auditRoutes } from '../audit/audit-routes.ts';
import { createOrigin } from '../catalogue/origin.ts';
import { addressOf, type Config } from '../config.ts';
import { getOpenApi } from '../contract/service.ts';
import { deploymentLogRoutes, type LogParts } from '../deployments/deployment-log-routes.ts';
import { deploymentRoutes } from '../deployments/deployment-routes.ts';
import { environmentRoutes } from '../environments/environment-routes.ts';
import type { Gate } from '../http/api/gate.ts';
import { type ServedRoute, serve } from '../http/api/served-route.ts';
import { mountConsole } from '../http/console.ts';
import type { HttpMetrics } from '../http/http-metrics.ts';
import { openApiDocument } from '../http/openapi.ts';
import { createServer, type ServerTimeouts } from '../http/server.ts';
import { mountServicePages, mountSite } from '../http/service-pages.ts';
import {
  cutOffStalledReaders,
  type ListenAt,
  limitConnections,
  listenAt,
  portOf,
  trackConnections,
} from '../lib/connections.ts';
import { capConnections, readOpenFileLimit } from '../lib/open-files.ts';
import { environmentLifecycleRoutes } from '../lifecycle/environment-lifecycle.ts';
import { projectLifecycleRoutes } from '../lifecycle/project-lifecycle.ts';
import { overviewRoutes } from '../overview/overview-routes.ts';
import { projectRoutes } from '../projects/project-routes.ts';
import { regionRoutes } from '../regions/region-routes.ts';
import type { Regions } from '../regions/regions.ts';
import { registryRoutes } from '../registries/registry-routes.ts';
import { mountSessions } from '../tokens/console-sessions.ts';
import { sessionRoutes } from '../tokens/session-routes.ts';
import { tokenRoutes } from '../tokens/token-routes.ts';
import { version } from '../version.ts';
import type { Addresses } from './addresses.ts';
import type { Common } from './common.ts';

interface WebParts {
  gate: Gate;
  metrics: HttpMetrics;
  timeouts: ServerTimeouts;
  routes: ServedRoute[];
  /** Metrics of the deployed revisions, in Prometheus' text format. */
  deploymentMetrics(): Promise<string>;
  /** What `/readyz` says besides, though it is ready. */
  remarks(): string[];
  /** How many routers of this process have a routing table in force; null: it has none to do with. */
  countRouters(): number | null;
  /** The root of the local CA; null: there is none. */
  caPem: (() => Promise<string>) | null;
}

/** How long clients with an open connection have to use it once more and be told to come back on another. */
const moveOverMs = 1000;
/** How long a connection that was accepted last may take to send its request. */
const lastRequestMs = 1000;
const pollMs = 50;

export interface Web {
  server: FastifyInstance;
  /** The public address of the catalogue. */
  baseUrl(): string;
  /** The public address of the API, without /v1. */
  apiUrl(): string;
  listen(at: ListenAt): Promise<void>;
  /** Answers end their connections, so that clients come back to the next process. Resolves when this one accepts no more. */
  moveOver(): Promise<void>;
  /** Accepts no more connections. Requests on those that are open get 503. */
  refuse(): void;
  /** Resolves when the requests under way have ended, or were cut off after `drainMs`. */
  finish(drainMs: number): Promise<void>;
}

export function createWeb(common: Common, config: Config, parts: WebParts): Web {
  const { host, port, roles, trustedProxies } = config;
  let listeningAt = addressOf(host, port);
  let phase: 'serving' | 'moving' | 'stopping' = 'serving';
  const service = {
    ...parts,
    baseUrl: () => config.baseUrl ?? listeningAt,
    apiUrl: () => config.apiUrl ?? service.baseUrl(),
    isStopping: () => phase === 'stopping',
    endsConnections: () => phase !== 'serving',
  };
  const server = createServer({ ...common, ...service, trustedProxies });
  const metricsAccess = { token: config.metricsToken, isOpen: config.metricsOpen === 'on', trustedProxies };
  mountServicePages(server, { ...common, ...service, metricsAccess });
  if (roles.includes('api')) {
    mountSessions(server, { ...common, ...service });
    mountConsole(server);
  }
  const origin = roles.includes('catalogue') ? createOrigin(config.catalogueDir) : null;
  if (origin) mountSite(server.server, origin.handle, service.endsConnections, roles.includes('api'));
  const connections = capConnections(config.connections, 2, readOpenFileLimit());
  if (connections < config.connections / 2)
    common.log.warn({ connections }, 'far fewer API connections than set: see `ulimit -n`');
  limitConnections({ ...config, connections }, trustedProxies, [server.server]);
  cutOffStalledReaders(server.server, config.stallTimeoutS * 1000);
  const tracked = trackConnections(server.server);
  let closedAt = 0;
  return {
    server,
    baseUrl: service.baseUrl,
    apiUrl: service.apiUrl,
    async listen(at) {
      await server.ready();
      await listenAt(server.server, at);
      listeningAt = addressOf(host, portOf(server.server));
    },
    async moveOver() {
      phase = 'moving';
      for (let waitedMs = 0; waitedMs < moveOverMs && (await hasConnections(server.server)); waitedMs += pollMs)
        await new Promise((resolve) => setTimeout(resolve, pollMs));
      closedAt = performance.now();
      tracked.stopAccepting();
    },
    refuse() {
      phase = 'stopping';
      void tracked.closeWhenIdle();
    },
    async finish(drainMs) {
      const force = setTimeout(() => server.server.closeAllConnections(), drainMs);
      await tracked.closeWhenIdle(phase === 'moving' ? closedAt + lastRequestMs : 0);
      clearTimeout(force);
      await server.close();
      await origin?.close();
    },
  };
}

const hasConnections = (server: Server): Promise<boolean> =>
  new Promise((resolve) => server.getConnections((error, count) => resolve(!error && count > 0)));

const dayMs = 86_400_000;

/** Every route of the API. `more`: the parts that bring their own routes. */
export function apiRoutes(
  common: Common & { requestsOf(accountId: string): Promise<number> },
  regions: Regions,
  addresses: Addresses,
  { hostKeptDays }: Pick<Config, 'hostKeptDays'>,
  storedLogs: LogParts['storedLogs'],
  more: { routes: ServedRoute[] }[],
): ServedRoute[] {
  let openApi: Record<string, unknown> | null = null;
  const parts = {
    ...common,
    regions,
    urlOf: addresses.environmentUrl,
    hostKeptMs: hostKeptDays * dayMs,
    storedLogs,
  };
  return [
    ...overviewRoutes({ ...parts, domainUrlOf: addresses.domainUrl }),
    ...projectRoutes(parts),
    ...projectLifecycleRoutes(parts),
    ...environmentRoutes(parts),
    ...environmentLifecycleRoutes(parts),
    ...deploymentRoutes(parts),
    ...deploymentLogRoutes(parts),
    ...more.flatMap(({ routes }) => routes),
    ...registryRoutes(parts),
    ...tokenRoutes(parts),
    ...accountRoutes(parts),
    ...sessionRoutes(parts),
    ...regionRoutes(regions),
    ...auditRoutes(),
    serve(getOpenApi, async () => {
      openApi ??= openApiDocument(version);
      return { body: openApi };
    }),
  ];
}
