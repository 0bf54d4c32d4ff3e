// The built-in data plane: an HTTP/1.1 reverse proxy in this process.
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { Clock } from '../lib/clock.ts';
import { createIds } from '../lib/ids.ts';
import type { Log } from '../lib/log.ts';
import { Counts } from './counts.ts';
import type { DataPlane } from './data-plane.ts';
import { Exchange, type Surroundings } from './exchange.ts';
import { codeOf } from './failures.ts';
import { Ways } from './instances.ts';
import { defaultLimits, type ProxyLimits } from './limits.ts';
import { answerRaw, own } from './own-answers.ts';

/** How long a client may take to close after us. */
const lingerMs = 5000;

export interface ProxyOptions {
  host: string;
  port: number;
  clock: Clock;
  log: Log;
  limits?: Partial<ProxyLimits>;
}

export async function startProxy({ host, port, clock, log, limits: changed }: ProxyOptions): Promise<DataPlane> {
  const limits = { ...defaultLimits, ...changed };
  const counts = new Counts(clock);
  const ways = new Ways(limits, counts);
  const around: Surroundings = {
    clock,
    log,
    limits,
    ids: createIds(clock),
    ways,
    draining: false,
    upgrades: new Set(),
  };
  const server = createProxyServer(around);
  server.listen(port, host);
  await once(server, 'listening');
  return {
    apply: (table) => ways.apply(table),
    takeMeasurements: () => counts.take(),
    port: () => (server.address() as AddressInfo).port,
    stop: (drainMs) => stop(server, around, drainMs),
  };
}

function createProxyServer(around: Surroundings): Server {
  const { limits } = around;
  const server = createServer({
    maxHeaderSize: limits.headerBytes,
    headersTimeout: limits.requestHeadMs,
    requestTimeout: 0, // an upload may take as long as it likes, as long as it moves
    keepAliveTimeout: limits.keepAliveMs,
    connectionsCheckingInterval: Math.min(1000, limits.requestHeadMs),
    optimizeEmptyRequests: true,
    shouldUpgradeCallback: isUpgrade,
  });
  server.maxHeadersCount = 0; // Node drops what is beyond; the exchange counts, and refuses
  server.maxConnections = limits.connections;
  // An instance that stands still is noticed before its client, who waits for it.
  server.timeout = Math.max(limits.idleMs, limits.answerHeadMs + limits.retryMs) + 2000;
  server.on('request', (request, response) => new Exchange(around, request, response).start());
  server.on('checkContinue', (request, response) => new Exchange(around, request, response, true).start());
  server.on('upgrade', (request, socket, head) => upgrade(around, request, socket as Socket, head));
  server.on('connect', (_, socket) => answerRaw(socket, own.badMethod, around.ids('req')));
  server.on('clientError', (error, socket) => refuse(around, error, socket));
  return server;
}

/** HTTP/2 without TLS is not spoken, and passing its upgrade on would open a way past the routing. */
const isUpgrade = ({ headers }: IncomingMessage): boolean => !/\bh2c?\b/i.test(headers.upgrade ?? '');

function upgrade(around: Surroundings, request: IncomingMessage, socket: Socket, head: Buffer): void {
  socket.on('error', () => {}); // its end is heard as a close
  around.upgrades.add(socket);
  socket.once('close', () => around.upgrades.delete(socket));
  const response = new ServerResponse(request);
  try {
    response.assignSocket(socket);
  } catch {
    socket.destroy(); // the answer to an earlier request of this connection is still under way
    return;
  }
  if (head.length > 0) socket.unshift(head);
  response.shouldKeepAlive = false;
  // Where the instance does not switch, what the client sent on is for nobody.
  response.once('finish', () => {
    socket.end();
    socket.resume().setTimeout(lingerMs, () => socket.destroy());
  });
  new Exchange(around, request, response).start(request.headers.upgrade!);
}

/** Bytes that are no request, or came too slowly. */
function refuse({ ids }: Surroundings, error: Error, socket: Duplex & { _httpMessage?: ServerResponse | null }): void {
  // Where an answer has begun, anything else would be taken for a part of it.
  const code = codeOf(error);
  if (!socket.writable || socket._httpMessage?.headersSent || code === 'ECONNRESET') {
    socket.destroy();
    return;
  }
  const what =
    code === 'HPE_HEADER_OVERFLOW'
      ? own.headTooLarge
      : code === 'ERR_HTTP_REQUEST_TIMEOUT'
        ? own.tooSlow
        : own.badRequest;
  answerRaw(socket, what, ids('req'));
}

async function stop(server: Server, around: Surroundings, drainMs: number): Promise<void> {
  around.draining = true;
  const closed = new Promise<void>((resolve) => server.close(() => resolve()));
  // A connection whose answer had begun before is idle once it has ended.
  const idle = setInterval(() => server.closeIdleConnections(), 50);
  const force = setTimeout(() => {
    server.closeAllConnections();
    for (const client of around.upgrades) client.destroy();
  }, drainMs);
  server.closeIdleConnections();
  await closed;
  clearInterval(idle);
  clearTimeout(force);
  await around.ways.destroy();
}
