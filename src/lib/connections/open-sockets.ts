import type { Server, Socket } from 'node:net';

/** The connections of a server that are open, kept up to date. */
export function openSockets(server: Server): ReadonlySet<Socket> {
  const open = new Set<Socket>();
  server.on('connection', (socket: Socket) => {
    open.add(socket);
    socket.once('close', () => open.delete(socket));
  });
  return open;
}
