// What a worker and the agent tell each other, over a unix socket that only their user can open: one JSON value a line.
import type { Socket } from 'node:net';
import type { StoredCertificate } from '../certificates.ts';
import type { Measurement } from '../measure/measurements.ts';
import type { EnvironmentRoutes } from '../table.ts';

export type ToWorker =
  /** The whole table follows: `routes` until `end`, which drops what was not among them. */
  | { type: 'begin' }
  | { type: 'routes'; routes: EnvironmentRoutes[] }
  | { type: 'end'; version: number }
  | { type: 'change'; version: number; routes: EnvironmentRoutes[] }
  /** Certificates of these names may have changed; null: any. */
  | { type: 'expire'; names: string[] | null }
  | { type: 'ticket-key'; key: string }
  | { type: 'answer'; ask: number; answer: StoredCertificate | string | null }
  | { type: 'no-answer'; ask: number }
  | { type: 'settled'; batch: number; stored: boolean }
  | { type: 'ping' };

export type FromWorker =
  /** The first message. `version`: of the table that it routes by already; null: it does not listen yet. */
  | { type: 'hello'; id: string; pid: number; version: number | null }
  | { type: 'applied'; version: number }
  | { type: 'certificate'; ask: number; hostname: string; known: string | null }
  | { type: 'challenge'; ask: number; hostname: string; token: string }
  | { type: 'measured'; batch: number; router: string; measurements: Measurement[] }
  | { type: 'pong' }
  /** It has ended all its requests, and ends. */
  | { type: 'bye' };

/** Far more than any message has; a longer one is none of ours. */
const maxMessage = 64 * 1024 * 1024;

/** False: much is waiting to be sent, and the caller should wait for `drain`. */
export const sendMessage = (socket: Socket, message: ToWorker | FromWorker): boolean =>
  socket.writable && socket.write(`${JSON.stringify(message)}\n`);

export function onMessages<M extends ToWorker | FromWorker>(socket: Socket, handle: (message: M) => void): void {
  let rest = '';
  socket.setEncoding('utf8').on('data', (chunk: string) => {
    const lines = (rest + chunk).split('\n');
    rest = lines.pop()!;
    for (const line of lines) handle(JSON.parse(line) as M);
    if (rest.length > maxMessage) socket.destroy();
  });
}
