// What the service's own port serves: the API, the reference, health and metrics, the console, and the catalogue.
import type { AddressInfo } from 'node:net';
import type { FastifyInstance } from 'fastify';
import { createOrigin } from '../catalogue/origin/origin.ts';
import { addressOf, type Config } from '../config.ts';
import type { Gate } from '../http/api/gate.ts';
import type { ServedRoute } from '../http/api/route.ts';
import type { HttpMetrics } from '../http/metrics.ts';
import { createServer, type ServerTimeouts } from '../http/server.ts';
import { mountConsole } from '../http/web/console.ts';
import { mountServicePages } from '../http/web/service-pages.ts';
import { mountSite } from '../http/web/site.ts';
import type { Common } from './common.ts';

interface WebParts {
  gate: Gate;
  metrics: HttpMetrics;
  timeouts: ServerTimeouts;
  routes: ServedRoute[];
  /** Metrics of the deployed revisions, in Prometheus' text format. */
  figures(): Promise<string>;
  /** The root of the local CA; null: there is none. */
  caPem: (() => Promise<string>) | null;
}

export interface Web {
  server: FastifyInstance;
  /** The public address of the catalogue. */
  baseUrl(): string;
  /** The public address of the API, without /v1. */
  apiUrl(): string;
  listen(): Promise<void>;
  /** Requests under way are finished; new ones get 503 where their connection is still open. */
  stop(): Promise<void>;
}

export function createWeb(common: Common, config: Config, parts: WebParts): Web {
  const { host, port, roles, trustedProxies } = config;
  let listeningAt = addressOf(host, port);
  let stopping = false;
  const service = {
    ...parts,
    baseUrl: () => config.baseUrl ?? listeningAt,
    apiUrl: () => config.apiUrl ?? service.baseUrl(),
    isStopping: () => stopping,
  };
  const server = createServer({ ...common, ...service, trustedProxies });
  mountServicePages(server, { ...common, ...service });
  if (roles.includes('api')) mountConsole(server);
  const origin = roles.includes('catalogue') ? createOrigin(config.catalogueDir) : null;
  if (origin) mountSite(server.server, origin.handle);
  return {
    server,
    baseUrl: service.baseUrl,
    apiUrl: service.apiUrl,
    async listen() {
      await server.listen({ host, port });
      listeningAt = addressOf(host, (server.server.address() as AddressInfo).port);
    },
    async stop() {
      stopping = true;
      await server.close();
      await origin?.close();
    },
  };
}
