// One limit for the connections of two listeners. Each may have what the other leaves over; beyond that the kernel's
// connection is closed before anything is made of it.
import type { Server, Socket } from 'node:net';

export function shareConnections(limit: number, one: Server, other: Server): void {
  const count = (from: Server, to: Server) => {
    let open = 0;
    from.on('connection', (socket: Socket & { encrypted?: boolean }) => {
      if (socket.encrypted) return; // handed on after its handshake, and counted before it
      to.maxConnections = limit - ++open;
      socket.once('close', () => {
        to.maxConnections = limit - --open;
      });
    });
    to.maxConnections = limit;
  };
  count(one, other);
  count(other, one);
}
