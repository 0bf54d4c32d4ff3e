// Stands in front of a Docker engine and, when told so, lets only its ping through: everything else is taken and never
// answered, as by an engine whose storage hangs.
import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';

export interface HangingDocker {
  /** For SLUICE_REGIONS: `far=docker:${address}`. */
  address: string;
  hang(): void;
  /** Answers again; what was taken meanwhile is cut off. */
  letGo(): void;
  /** How many calls were taken without an answer. */
  taken(): number;
  stop(): void;
}

export async function hangingDocker(socketPath: string): Promise<HangingDocker> {
  const open = new Set<Socket>();
  const stuck = new Set<Socket>();
  let hangs = false;
  let taken = 0;

  const forward = (incoming: Socket, first: Buffer) => {
    const outgoing = connect(socketPath);
    open.add(outgoing);
    outgoing.write(first);
    incoming.pipe(outgoing).pipe(incoming);
    for (const [end, other] of [[incoming, outgoing] as const, [outgoing, incoming] as const]) {
      end.on('error', () => other.destroy());
      end.on('close', () => other.destroy());
    }
  };
  const server = createServer((incoming) => {
    open.add(incoming);
    incoming.on('error', () => {});
    incoming.once('data', (first: Buffer) => {
      if (!hangs || /^\w+ \/(v[\d.]+\/)?_ping /.test(first.toString('latin1'))) return forward(incoming, first);
      taken++;
      stuck.add(incoming);
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    address: `tcp://127.0.0.1:${(server.address() as { port: number }).port}`,
    hang() {
      hangs = true;
    },
    letGo() {
      hangs = false;
      for (const socket of stuck) socket.destroy();
      stuck.clear();
    },
    taken: () => taken,
    stop() {
      for (const socket of open) socket.destroy();
      server.close();
    },
  };
}
