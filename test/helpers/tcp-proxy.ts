// A TCP proxy in front of a server on loopback that can go silent as a network does which drops packets: what is open
// stays open and carries nothing any more, what is new is accepted and never answered.
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

export interface TcpProxy {
  port: number;
  /** Connections open now carry nothing from now on, and never again. */
  silence(): void;
  /** New connections are forwarded again; those that fell silent stay so. */
  open(): void;
  /** How many connections are forwarded now. */
  readonly alive: number;
  close(): Promise<void>;
}

export async function startTcpProxy(targetPort: number): Promise<TcpProxy> {
  const sockets = new Set<Socket>();
  const alive = new Set<Socket>();
  let silent = false;
  const keep = (socket: Socket) => {
    sockets.add(socket);
    socket.on('error', () => {});
    socket.on('close', () => sockets.delete(socket));
  };
  const server = createServer({ allowHalfOpen: true }, (client) => {
    keep(client);
    if (silent) return void client.pause();
    const target = connect(targetPort, '127.0.0.1');
    keep(target);
    alive.add(client);
    client.pipe(target);
    target.pipe(client);
    const end = () => {
      if (!alive.delete(client)) return;
      client.destroy();
      target.destroy();
    };
    client.on('close', end);
    target.on('close', end);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    silence() {
      silent = true;
      alive.clear();
      for (const socket of sockets) socket.unpipe().pause();
    },
    open() {
      silent = false;
    },
    get alive() {
      return alive.size;
    },
    async close() {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, 'close');
    },
  };
}
