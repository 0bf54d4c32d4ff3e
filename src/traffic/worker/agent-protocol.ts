// What a worker and its environment exchange: its settings at the start, and messages with the agent over a unix socket
// that only their user can open, one JSON value a line.
import type { Socket } from 'node:net';
import { join } from 'node:path';
import { socketPathIn } from '../../lib/private-files.ts';
import type { EnvironmentRoutes, StoredCertificate } from '../data-plane.ts';
import type { Measurement } from '../measurements.ts';
import type { ProxyLimits } from '../proxy/limits.ts';

/** Passed to a worker at its start, as JSON in SLUICE_WORKER. */
export interface WorkerSettings {
  /** Among the workers of this machine, for the log. */
  name: string;
  /** Where the agent listens. */
  agentSocket: string;
  /** Where it waits for its successors if its supervisor is killed. */
  supervisorSocket: string;
  /** The last table, the certificates in use, and measurements that were not handed over. */
  routingDir: string;
  /** Base64; opens the certificates in `routingDir`. */
  routingKey: string;
  /** How long requests under way may take once it was asked to end. */
  drainS: number;
  /** File descriptors of the sockets it listens on; null: no TLS. */
  httpFd: number;
  tlsFd: number | null;
  redirect: { port: number | null } | null;
  /** Ranges such as 10.0.0.0/8. */
  trustedProxies: string[];
  limits: Partial<ProxyLimits>;
  logLevel: string;
  logFormat: 'json' | 'pretty';
}

/** Where a worker finds the last table if nobody gives it one. */
export const tablePathIn = (routingDir: string): string => join(routingDir, 'table.ndjson');

/** Where the agent listens for its workers. */
export const agentSocketPath = (dataDir: string): string => socketPathIn(join(dataDir, 'routing'), 'agent.sock');

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

/** Far longer than any message: a connection that sends more is closed. */
const maxMessage = 64 * 1024 * 1024;

/** False: much is waiting to be sent, and the caller should wait for `drain`. */
export const sendMessage = (socket: Socket, message: ToWorker | FromWorker): boolean =>
  socket.writable && socket.write(`${JSON.stringify(message)}\n`);

/** What else waits, such as visitors' requests, waits no longer than this for messages that arrive in a row. */
const sliceMs = 1;

/** A whole table is megabytes of messages, so they are handled in slices; what arrives meanwhile stays with the sender. */
export function onMessages<M extends ToWorker | FromWorker>(socket: Socket, handle: (message: M) => void): void {
  let rest = '';
  let lines: string[] = [];
  let next = 0;
  const handleSlice = () => {
    const endAt = performance.now() + sliceMs;
    while (next < lines.length) {
      if (performance.now() > endAt) {
        setImmediate(handleSlice);
        socket.pause();
        return;
      }
      handle(JSON.parse(lines[next++]!) as M);
    }
    if (socket.isPaused()) socket.resume();
  };
  socket.setEncoding('utf8').on('data', (chunk: string) => {
    const more = (rest + chunk).split('\n');
    rest = more.pop()!;
    lines = next === lines.length ? more : [...lines.slice(next), ...more];
    next = 0;
    handleSlice();
    if (rest.length > maxMessage) socket.destroy();
  });
  // A table that is sent over the next connection begins anew: nothing of this one may come after it.
  socket.once('close', () => {
    lines = [];
    next = 0;
  });
}
