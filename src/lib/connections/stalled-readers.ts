// Cuts off clients that do not take what is sent to them: what waits for them is memory, and a place among the connections.
import type { Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/**
 * A connection closes when nothing of a response has been taken for this long. However slowly it is taken, that does not
 * count, nor does the time in which a response is being prepared.
 */
export function cutOffStalledReaders(server: Server, stallMs: number): void {
  server.timeout = stallMs;
  server.prependListener('request', (_request, response: ServerResponse) => {
    response.on('timeout', (socket: Socket) => {
      if (socket.writableLength > 0) socket.destroy();
    });
  });
}
