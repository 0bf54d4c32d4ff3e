// Where a server listens: at an address of its own, or on a socket that the supervisor opened, which it has inherited as a
// file descriptor or received as a handle.
import { once } from 'node:events';
import type { AddressInfo, Server } from 'node:net';

export type ListenAt = { host: string; port: number } | { fd: number } | { _handle: object };

export async function listenAt(server: Server, at: ListenAt): Promise<void> {
  server.listen(at);
  await once(server, 'listening');
}

export const portOf = (server: Server): number => (server.address() as AddressInfo).port;

export const hostOf = (server: Server): string => (server.address() as AddressInfo).address;
