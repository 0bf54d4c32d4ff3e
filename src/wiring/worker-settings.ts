// What the supervisor tells its router workers, from the settings of the service.
import { join } from 'node:path';
import type { Config } from '../config.ts';
import { rangeText } from '../lib/address.ts';
import type { Seal } from '../lib/seal.ts';
import type { WorkerSettings } from '../traffic/worker/agent-protocol.ts';
import { routingKey } from '../traffic/worker/routing-files.ts';

export const routingDirOf = (dataDir: string): string => join(dataDir, 'routing');

interface WorkerPlace {
  name: string;
  /** How many workers there are: they share the connections. */
  workers: number;
  agentSocket: string;
  supervisorSocket: string;
  drainS: number;
}

/** The worker's socket for HTTP is file descriptor 3; that for TLS, where there is one, 4. */
export function workerSettings(config: Config, seal: Seal, { workers, ...place }: WorkerPlace): WorkerSettings {
  const shared = (connections: number) => Math.ceil(connections / workers);
  return {
    ...place,
    routingDir: routingDirOf(config.dataDir),
    routingKey: routingKey(seal).toString('base64'),
    httpFd: 3,
    tlsFd: 4,
    redirect: config.httpsRedirect,
    trustedProxies: config.trustedProxies.map(rangeText),
    limits: {
      connections: shared(config.routerConnections),
      connectionsPerAddress: shared(config.routerConnectionsPerAddress),
    },
    logLevel: config.logLevel,
    logFormat: config.logFormat,
  };
}
