// The connections of our own servers, from listening to the last one that closes: how many a client may have, how long it
// may leave a response unread, and how they end without cutting off a request or a response.
import { once } from 'node:events';
import type { Server as HttpServer } from 'node:http';
import { type AddressInfo, Server, type Socket } from 'node:net';
import { isAmong, networkOf, type Range } from './address.ts';

/** An address of the server's own, or a socket that the supervisor opened: inherited as a descriptor or sent as a handle. */
export type ListenAt = { host: string; port: number } | { fd: number } | { _handle: object };

export async function listenAt(server: Server, at: ListenAt): Promise<void> {
  server.listen(at);
  await once(server, 'listening');
}

export const portOf = (server: Server): number => (server.address() as AddressInfo).port;

export const hostOf = (server: Server): string => (server.address() as AddressInfo).address;

interface ConnectionLimits {
  connections: number;
  /** 0: no such limit. Trusted proxies are excepted. */
  connectionsPerAddress: number;
}

/** Limits connections: in all, over every listener, and per address. Those beyond a limit are closed before a byte is read. */
export function limitConnections(
  { connections, connectionsPerAddress }: ConnectionLimits,
  trustedProxies: readonly Range[],
  servers: Server[],
): void {
  shareLimit(connections, servers);
  if (connectionsPerAddress > 0) limitAddresses(connectionsPerAddress, trustedProxies, servers);
}

/** The TLS listener passes a connection on after its handshake, and has counted it. */
const isPassedOn = (socket: Socket & { encrypted?: boolean }): boolean => socket.encrypted === true;

/** Each listener may have what the other leaves; Node closes connections beyond that before it creates anything. */
function shareLimit(limit: number, servers: Server[]): void {
  for (const server of servers) {
    const others = servers.filter((other) => other !== server);
    const leave = (open: number) => {
      for (const other of others) other.maxConnections = limit - open;
    };
    let open = 0;
    server.maxConnections = limit;
    server.on('connection', (socket: Socket) => {
      if (isPassedOn(socket)) return;
      leave(++open);
      socket.once('close', () => leave(--open));
    });
  }
}

function limitAddresses(limit: number, trustedProxies: readonly Range[], servers: Server[]): void {
  const open = new Map<string, number>();
  for (const server of servers) {
    server.prependListener('connection', (socket: Socket) => {
      if (isPassedOn(socket)) return;
      const address = socket.remoteAddress ?? '';
      if (isAmong(address, trustedProxies)) return;
      const key = networkOf(address);
      const count = (open.get(key) ?? 0) + 1;
      open.set(key, count);
      socket.once('close', () => {
        const left = open.get(key)! - 1;
        if (left === 0) open.delete(key);
        else open.set(key, left);
      });
      if (count > limit) socket.destroy();
    });
  }
}

const checkStalledEveryMs = 1000;

/**
 * Closes a connection when its client has read nothing of a response for this long: what waits for it takes memory, and a
 * place among the connections. A client that reads slowly is not affected, nor is the time in which a response is prepared.
 *
 * Only connections with unread data get a time limit: setting one for every request would make each of them slower.
 */
export function cutOffStalledReaders(server: HttpServer, stallMs: number): void {
  // The half millisecond distinguishes this timeout from Node's own for idle connections.
  const limitMs = stallMs + 0.5;
  const replaced = new WeakMap<Socket, number>();
  const open = openSockets(server);
  const check = () => {
    for (const socket of open) {
      if (socket.writableLength === 0 || socket.timeout === limitMs) continue;
      replaced.set(socket, socket.timeout ?? 0);
      socket.setTimeout(limitMs);
    }
  };
  const timer = setInterval(check, Math.min(checkStalledEveryMs, stallMs)).unref();
  server.once('close', () => clearInterval(timer));
  // Node closes a connection at its time limit, unless there is a listener.
  server.on('timeout', (socket) => {
    if (socket.timeout !== limitMs || socket.writableLength > 0) socket.destroy();
    else socket.setTimeout(replaced.get(socket) ?? 0);
  });
}

export interface Connections {
  /** Closes no connections, unlike `close` of node:http. */
  stopAccepting(): void;
  /**
   * Accepts no more and closes, from then on, those on which no request is on its way and no response is still to be
   * sent, each as soon as that is so. `from` is by `performance.now()`. Resolves when the last one has closed.
   */
  closeWhenIdle(from?: number): Promise<void>;
}

const checkIdleEveryMs = 50;

/** `listeners` are those that hand their connections to the server, as one for TLS does. */
export function trackConnections(server: HttpServer, listeners: Server[] = []): Connections {
  const open = openSockets(server);
  let closed: Promise<unknown> | undefined;
  const close = () => {
    closed ??= Promise.all([server, ...listeners].map(closeListener));
    return closed;
  };
  const closeIdle = () => {
    // Node 24 counts a connection on which nothing has been sent yet as one with a request under way.
    for (const socket of open) if (socket.bytesRead === 0) socket.destroy();
    // Node counts a connection as idle once its response was ended, though the client may not have taken all of it.
    const sending = [...open].filter(({ writableLength }) => writableLength > 0);
    for (const socket of sending) socket.destroy = () => socket;
    server.closeIdleConnections();
    for (const socket of sending) delete (socket as Partial<Socket>).destroy;
  };
  return {
    stopAccepting: () => void close(),
    async closeWhenIdle(from = 0) {
      const check = () => {
        if (performance.now() >= from) closeIdle();
      };
      const ended = close();
      check();
      // A connection whose response began before is kept alive, and becomes idle only when that has ended.
      const timer = setInterval(check, checkIdleEveryMs);
      await ended;
      clearInterval(timer);
    },
  };
}

/** Resolves when its last connection has closed. */
const closeListener = (listener: Server): Promise<void> =>
  new Promise((resolve) => (listener.listening ? Server.prototype.close.call(listener, () => resolve()) : resolve()));

/** The connections of a server that are open, kept up to date. */
function openSockets(server: Server): ReadonlySet<Socket> {
  const open = new Set<Socket>();
  server.on('connection', (socket: Socket) => {
    open.add(socket);
    socket.once('close', () => open.delete(socket));
  });
  return open;
}
