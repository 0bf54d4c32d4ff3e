// Cuts off clients that do not take what is sent to them: what waits for them is memory, and a place among the connections.
import type { Server as HttpServer } from 'node:http';
import type { Socket } from 'node:net';
import { openSockets } from './open-sockets.ts';

const lookEveryMs = 1000;

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
  const looking = setInterval(look, Math.min(lookEveryMs, stallMs)).unref();
  server.once('close', () => clearInterval(looking));
  // Node closes a connection at its time limit, unless there is a listener.
  server.on('timeout', (socket) => {
    if (socket.timeout !== limitMs || socket.writableLength > 0) socket.destroy();
    else socket.setTimeout(replaced.get(socket) ?? 0);
  });
}
