// Stands in front of a Docker engine. When told so, it takes calls and never answers them, as an engine whose storage hangs:
// all but its ping, or some.
import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';

export interface HangingDocker {
  /** For SLUICE_REGIONS: `far=docker:${address}`. */
  address: string;
  /** `calls`: what begins with these, as in `POST /containers/create`; by default all but the ping. */
  hang(calls?: RegExp): void;
  /** Answers again; what was taken meanwhile is cut off. */
  release(): void;
  /** How many calls were taken without an answer. */
  taken(): number;
  stop(): void;
}

export async function hangingDocker(socketPath: string): Promise<HangingDocker> {
  const open = new Set<Socket>();
  const stuck = new Set<Socket>();
  let hanging: RegExp | null = null;
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
      if (!hanging?.test(first.toString('latin1'))) return forward(incoming, first);
      taken++;
      stuck.add(incoming);
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    address: `tcp://127.0.0.1:${(server.address() as { port: number }).port}`,
    hang(calls = /^(?!\w+ \/_ping )/) {
      hanging = calls;
    },
    release() {
      hanging = null;
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
