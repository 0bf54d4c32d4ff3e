// Ends the connections of an HTTP server without cutting off a request or a response.
import type { Server as HttpServer } from 'node:http';
import { Server, type Socket } from 'node:net';
import { openSockets } from './open-sockets.ts';

export interface Connections {
  /** Closes no connections, unlike `close` of node:http. */
  stopAccepting(): void;
  /**
   * Accepts no more and closes, from then on, those on which no request is on its way and no response is still to be
   * sent, each as soon as that is so. `from` is by `performance.now()`. Resolves when the last one has closed.
   */
  closeWhenIdle(from?: number): Promise<void>;
}

const lookEveryMs = 50;

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
      const looking = setInterval(look, lookEveryMs);
      await ended;
      clearInterval(looking);
    },
  };
}

/** Resolves when its last connection has closed. */
const closeListener = (listener: Server): Promise<void> =>
  new Promise((resolve) => (listener.listening ? Server.prototype.close.call(listener, () => resolve()) : resolve()));
