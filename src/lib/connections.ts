// Where a server listens: at an address of its own, or on a socket that the supervisor opened, which it has inherited as a
// file descriptor or received as a handle.
import { once } from 'node:events';
import type { Server as HttpServer } from 'node:http';
import { type AddressInfo, Server, type Socket } from 'node:net';
import { isAmong, networkOf, type Range } from './address.ts';

export type ListenAt = { host: string; port: number } | { fd: number } | { _handle: object };

export async function listenAt(server: Server, at: ListenAt): Promise<void> {
  server.listen(at);
  await once(server, 'listening');
}

export const portOf = (server: Server): number => (server.address() as AddressInfo).port;

export const hostOf = (server: Server): string => (server.address() as AddressInfo).address;

// Limits of clients' connections: in all, over every listener, and of one address. Connections beyond one are closed
// before a byte is read of them.

interface ConnectionLimits {
  connections: number;
  /** 0: no such limit. Trusted proxies are excepted. */
  connectionsPerAddress: number;
}

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

// Cuts off clients that do not take what is sent to them: what waits for them is memory, and a place among the connections.

const checkStalledEveryMs = 1000;

/**
 * A connection closes when nothing of a response has been taken for this long. However slowly it is taken, that does not
 * count, nor does the time in which a response is being prepared.
 *
 * Only connections that have something waiting get a time limit: one for every request would cost each of them.
 */
export function cutOffStalledReaders(server: HttpServer, stallMs: number): void {
  // The half tells this time limit of a connection from Node's own for idle ones.
  const limitMs = stallMs + 0.5;
  const replaced = new WeakMap<Socket, number>();
  const open = openSockets(server);
  const look = () => {
    for (const socket of open) {
      if (socket.writableLength === 0 || socket.timeout === limitMs) continue;
      replaced.set(socket, socket.timeout ?? 0);
      socket.setTimeout(limitMs);
    }
  };
  const looking = setInterval(look, Math.min(checkStalledEveryMs, stallMs)).unref();
  server.once('close', () => clearInterval(looking));
  // Node closes a connection at its time limit, unless there is a listener.
  server.on('timeout', (socket) => {
    if (socket.timeout !== limitMs || socket.writableLength > 0) socket.destroy();
    else socket.setTimeout(replaced.get(socket) ?? 0);
  });
}

// Ends the connections of an HTTP server without cutting off a request or a response.

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
    // Node 24 takes a connection on which nothing was sent yet for one whose request is on its way.
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
      const look = () => {
        if (performance.now() >= from) closeIdle();
      };
      const ended = close();
      look();
      // A connection whose response began before is kept alive, and becomes idle only when that has ended.
      const looking = setInterval(look, checkIdleEveryMs);
      await ended;
      clearInterval(looking);
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
