// Ends the connections of an HTTP server without cutting off a request or a response.
import type { Server } from 'node:http';
import { Server as NetServer, type Socket } from 'node:net';

export interface Connections {
  /** Closes no connections, unlike `close` of node:http. Resolves when the last one has closed. */
  stopAccepting(): Promise<void>;
  /** Closes those on which no request is on its way and no response is still to be sent. */
  closeIdle(): void;
}

export function trackConnections(server: Server): Connections {
  const open = new Set<Socket>();
  server.on('connection', (socket: Socket) => {
    open.add(socket);
    socket.once('close', () => open.delete(socket));
  });
  let closed: Promise<void> | undefined;
  return {
    stopAccepting() {
      closed ??= new Promise((resolve) =>
        server.listening ? NetServer.prototype.close.call(server, () => resolve()) : resolve(),
      );
      return closed;
    },
    closeIdle() {
      // Node counts a connection as idle once its response was ended, though the client may not have taken all of it.
      const sending = [...open].filter(({ writableLength }) => writableLength > 0);
      for (const socket of sending) socket.destroy = () => socket;
      server.closeIdleConnections();
      for (const socket of sending) delete (socket as Partial<Socket>).destroy;
    },
  };
}
