// Limits of clients' connections: in all, over every listener, and of one address. Connections beyond one are closed
// before a byte is read of them.
import type { Server, Socket } from 'node:net';
import { isAmong, networkOf, type Range } from '../address.ts';

export interface ConnectionLimits {
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
