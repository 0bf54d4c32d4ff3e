// One limit for the connections of two listeners. Each may have what the other leaves; Node closes connections beyond
// that before it creates anything for them.
import type { Server, Socket } from 'node:net';

export function shareConnections(limit: number, one: Server, other: Server): void {
  const count = (from: Server, to: Server) => {
    let open = 0;
    from.on('connection', (socket: Socket & { encrypted?: boolean }) => {
      if (socket.encrypted) return; // the TLS listener passes it on after its handshake, and has counted it
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
