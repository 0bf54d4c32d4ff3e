// The built-in proxy: a reverse proxy in one process. It serves visitors over HTTP/1.1 and, with TLS, HTTP/2, and speaks
// HTTP/1.1 to instances.
import { once } from 'node:events';
import type { ServerHttp2Session } from 'node:http2';
import type { AddressInfo, Server } from 'node:net';
import type { Duplex } from 'node:stream';
import type { TLSSocket } from 'node:tls';
import type { Range } from '../../lib/address.ts';
import { type Clock, monotonicOf } from '../../lib/clock.ts';
import { type Connections, limitConnections, trackConnections } from '../../lib/connections.ts';
import { createIds } from '../../lib/ids.ts';
import type { Log } from '../../lib/log.ts';
import { type ListenerHandle, listenerOf } from '../../lib/pass-listeners.ts';
import type { RouterPorts } from '../data-plane.ts';
import { TrafficCounter } from '../measurements.ts';
import type { ProxyContext } from './exchange.ts';
import { FailedRequests } from './failures.ts';
import { createHttp1Server } from './http1-server.ts';
import { drainSession, serveHttp2 } from './http2-server.ts';
import { defaultLimits, type ProxyLimits } from './limits.ts';
import { RouteTable } from './route-table.ts';
import { SilentInstances } from './silent-instances.ts';
import { type Certificates, createTlsListener } from './tls-listener.ts';

/** An address, or a socket that another process opened and handed over. */
export type ListenAt = { host: string; port: number } | { fd: number };

export interface ProxyOptions {
  clock: Clock;
  log: Log;
  limits?: Partial<ProxyLimits>;
  /** null: there is no listener for TLS. */
  certificates: Certificates | null;
  /** Redirects plain HTTP requests for hosts with a certificate to this port; null in it: the one that listens here. */
  redirect?: { port: number | null } | null;
  trustedProxies?: readonly Range[];
}

export interface BuiltInProxy {
  routes: RouteTable;
  counter: TrafficCounter;
  listen(http: ListenAt, tls: ListenAt | null): Promise<RouterPorts>;
  /** The sockets it accepts connections from. */
  listeners(): ListenerHandle[];
  setTicketKey(key: Buffer): void;
  /**
   * Accepts no more connections. Resolves when the requests under way have ended, or were cut off after `drainMs`.
   * `lastRequestMs`: for how long a request may still arrive on an open connection, as its last one.
   */
  stop(drainMs: number, lastRequestMs?: number): Promise<void>;
}

const portOf = (server: Server): number => (server.address() as AddressInfo).port;

export function createProxy(options: ProxyOptions): BuiltInProxy {
  const { clock, log, limits: changed, certificates, redirect, trustedProxies = [] } = options;
  const limits = { ...defaultLimits, ...changed };
  const monotonic = monotonicOf(clock);
  const counter = new TrafficCounter(clock, monotonic);
  const routes = new RouteTable(limits, counter);
  const context: ProxyContext = {
    clock,
    monotonic,
    log,
    failedRequests: new FailedRequests(monotonic, log),
    limits,
    ids: createIds(clock),
    routes,
    silent: new SilentInstances(limits, monotonic, log),
    draining: false,
    closing: new WeakSet(),
    httpsPort: null,
    trustedProxies,
  };
  const upgrades = new Set<Duplex>();
  const sessions = new Set<ServerHttp2Session>();
  const http = createHttp1Server(context, certificates, upgrades);
  const onSecure = (socket: TLSSocket) => {
    socket.disableRenegotiation();
    if (socket.alpnProtocol === 'h2') serveHttp2(context, socket, sessions);
    else http.emit('connection', socket);
  };
  const { handshakeMs } = limits;
  const secure = certificates && createTlsListener({ certificates, log, handshakeMs, onSecure });
  const listeners = secure ? [secure.server] : [];
  const connections = trackConnections(http, listeners);
  limitConnections(limits, trustedProxies, [http, ...listeners]);
  return {
    routes,
    counter,
    async listen(plainAt, tlsAt) {
      await listen(http, plainAt);
      if (!secure || !tlsAt) return { http: portOf(http), tls: null };
      await listen(secure.server, tlsAt).catch((error) => {
        http.close();
        throw error;
      });
      if (redirect) context.httpsPort = redirect.port ?? portOf(secure.server);
      return { http: portOf(http), tls: portOf(secure.server) };
    },
    listeners: () => [http, ...listeners].flatMap((server) => listenerOf(server) ?? []),
    setTicketKey: (key) => void secure?.server.setTicketKeys(key),
    async stop(drainMs, lastRequestMs = 0) {
      context.draining = true;
      const cutOff = () => {
        http.closeAllConnections();
        for (const socket of upgrades) socket.destroy();
        secure?.destroyAll();
      };
      await drain(connections, sessions, cutOff, drainMs, lastRequestMs);
      context.silent.stop();
      await routes.destroy();
    },
  };
}

async function listen(server: Server, at: ListenAt): Promise<void> {
  server.listen(at);
  await once(server, 'listening');
}

/** Resolves when no connection is left. */
async function drain(
  connections: Connections,
  sessions: Set<ServerHttp2Session>,
  cutOff: () => void,
  drainMs: number,
  lastRequestMs: number,
): Promise<void> {
  const leaveFrom = performance.now() + lastRequestMs;
  const ended = connections.closeWhenIdle(leaveFrom);
  const leave = () => {
    if (performance.now() >= leaveFrom) for (const session of sessions) drainSession(session);
  };
  const leaving = setInterval(leave, 50);
  const force = setTimeout(cutOff, drainMs);
  leave();
  await ended;
  clearInterval(leaving);
  clearTimeout(force);
}
