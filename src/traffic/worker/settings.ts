// What a worker is told at its start, as JSON in SLUICE_WORKER.
import type { ProxyLimits } from '../proxy/limits.ts';

export interface WorkerSettings {
  /** Among the workers of this machine, for the log. */
  name: string;
  /** Where the agent listens. */
  agentSocket: string;
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
