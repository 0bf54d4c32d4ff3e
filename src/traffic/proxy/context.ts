// What every exchange of one proxy shares.
import type { ServerHttp2Session } from 'node:http2';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { Range } from '../../lib/address.ts';
import type { Clock } from '../../lib/clock.ts';
import type { IdSource } from '../../lib/ids.ts';
import type { Log } from '../../lib/log.ts';
import type { FailedRequests } from './failed-requests.ts';
import type { ProxyLimits } from './limits.ts';
import type { RouteTable } from './route-table.ts';

export interface ProxyContext {
  /** What is counted is counted at this time. */
  readonly clock: Clock;
  /** For how long something took or may take: somebody may set the other clock meanwhile. */
  readonly steady: Clock;
  readonly log: Log;
  readonly failedRequests: FailedRequests;
  readonly limits: ProxyLimits;
  readonly ids: IdSource;
  readonly routes: RouteTable;
  /** Addresses of proxies in front of this one, whose X-Forwarded-* headers are trusted. */
  readonly trustedProxies: readonly Range[];
  /** Connections that switched protocols, or asked to: the HTTP server no longer tracks them. */
  readonly upgrades: Set<Duplex>;
  /** HTTP/2 sessions, which the HTTP server does not track either. */
  readonly sessions: Set<ServerHttp2Session>;
  /** HTTP/1.1 connections that close with a response that refuses a request: what is behind it is not served. */
  readonly closing: WeakSet<Socket>;
  /** Where plain HTTP requests for a host with a certificate are redirected; null: they are served. */
  httpsPort: number | null;
  draining: boolean;
}
