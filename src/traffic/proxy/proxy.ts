// The built-in data plane: a reverse proxy in this process. It serves visitors over HTTP/1.1 and, with TLS, HTTP/2, and
// speaks HTTP/1.1 to instances.
import { once } from 'node:events';
import type { Server as HttpServer } from 'node:http';
import type { AddressInfo, Server } from 'node:net';
import type { Range } from '../../lib/address.ts';
import type { Clock } from '../../lib/clock.ts';
import { createIds } from '../../lib/ids.ts';
import type { Log } from '../../lib/log.ts';
import type { DataPlane } from '../data-plane.ts';
import { TrafficCounter } from '../measure/traffic-counter.ts';
import { shareConnections } from './connections.ts';
import type { ProxyContext } from './context.ts';
import { createHttp1Server } from './http1/server.ts';
import { drainSession, serveHttp2 } from './http2/session.ts';
import { defaultLimits, type ProxyLimits } from './limits.ts';
import { RouteTable } from './route-table.ts';
import type { Certificates } from './tls/certificates.ts';
import { createTlsListener, type TlsListener } from './tls/listener.ts';

export interface TlsOptions {
  port: number;
  certificates: Certificates;
  /** Redirects plain HTTP requests for hosts with a certificate to this port; null: the one that listens here. */
  redirect?: { port: number | null } | null;
}

interface ProxyOptions {
  host: string;
  port: number;
  clock: Clock;
  log: Log;
  limits?: Partial<ProxyLimits>;
  tls?: TlsOptions | null;
  trustedProxies?: readonly Range[];
}

const portOf = (server: Server): number => (server.address() as AddressInfo).port;

export async function startProxy(options: ProxyOptions): Promise<DataPlane> {
  const { host, port, clock, log, limits: changed, tls, trustedProxies = [] } = options;
  const limits = { ...defaultLimits, ...changed };
  const counter = new TrafficCounter(clock);
  const routes = new RouteTable(limits, counter);
  const context: ProxyContext = {
    clock,
    log,
    limits,
    ids: createIds(clock),
    routes,
    draining: false,
    upgrades: new Set(),
    sessions: new Set(),
    httpsPort: null,
    trustedProxies,
  };
  const http = createHttp1Server(context, tls?.certificates ?? null);
  const secure = tls ? createSecureListener(context, http, tls.certificates) : null;
  await listen(http, port, host);
  if (secure && tls) {
    await listen(secure.server, tls.port, host).catch((error) => {
      http.close();
      throw error;
    });
    if (tls.redirect) context.httpsPort = tls.redirect.port ?? portOf(secure.server);
  }
  return {
    apply: (table) => routes.apply(table),
    takeMeasurements: () => counter.take(),
    port: () => portOf(http),
    tlsPort: () => secure && portOf(secure.server),
    stop: (drainMs) => stop(http, secure, context, drainMs),
  };
}

async function listen(server: Server, port: number, host: string): Promise<void> {
  server.listen(port, host);
  await once(server, 'listening');
}

function createSecureListener(context: ProxyContext, http: HttpServer, certificates: Certificates): TlsListener {
  const { log, limits } = context;
  const listener = createTlsListener({
    certificates,
    log,
    handshakeMs: limits.handshakeMs,
    onSecure(socket) {
      socket.disableRenegotiation();
      if (context.draining) socket.destroy();
      else if (socket.alpnProtocol === 'h2') serveHttp2(context, socket);
      else http.emit('connection', socket);
    },
  });
  shareConnections(limits.connections, http, listener.server);
  return listener;
}

async function stop(
  http: HttpServer,
  secure: TlsListener | null,
  context: ProxyContext,
  drainMs: number,
): Promise<void> {
  context.draining = true;
  const servers = secure ? [http, secure.server] : [http];
  const closed = servers.map((server) => new Promise<void>((resolve) => server.close(() => resolve())));
  // A connection whose response began before the stop is kept alive, and becomes idle only when that has ended.
  const idle = setInterval(() => http.closeIdleConnections(), 50);
  const force = setTimeout(() => {
    http.closeAllConnections();
    for (const client of context.upgrades) client.destroy();
    secure?.destroyAll();
  }, drainMs);
  http.closeIdleConnections();
  for (const session of context.sessions) drainSession(session);
  await Promise.all(closed);
  clearInterval(idle);
  clearTimeout(force);
  await context.routes.destroy();
}
