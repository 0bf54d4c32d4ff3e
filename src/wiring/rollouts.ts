// What carries out deployments: the router that visitors send requests to, and the reconciler behind it.
import type { Config } from '../config.ts';
import { databaseLeases, onlyProcess } from '../deployments/reconcile/leases.ts';
import { Reconciler } from '../deployments/reconcile/reconciler.ts';
import type { Regions } from '../regions/regions.ts';
import { RouterAgent, routerPollMs } from '../traffic/agent.ts';
import type { Measurement } from '../traffic/measure/measurements.ts';
import { startProxy } from '../traffic/proxy/proxy.ts';
import type { Certificates } from '../traffic/proxy/tls/certificates.ts';
import type { Addresses } from './addresses.ts';
import type { Common } from './common.ts';

export interface Rollouts {
  start(): void;
  stop(): Promise<void>;
}

/** Without certificates there is no listener for TLS. */
export async function createRollouts(
  common: Common,
  config: Config,
  addresses: Addresses,
  regions: Regions,
  certificates: Certificates | null,
  onMeasured: (measurements: Measurement[]) => void,
): Promise<Rollouts> {
  const { db, dialect, clock, processId } = common;
  const router = config.roles.includes('router')
    ? new RouterAgent({
        ...common,
        dataPlane: await startRouter(common, config, certificates),
        domain: config.routerDomain,
        id: processId,
        onMeasured,
      })
    : null;
  if (router) addresses.router = { http: router.port(), tls: router.tlsPort() };
  const reconciler = new Reconciler({
    ...common,
    regions,
    leases: dialect === 'sqlite' ? onlyProcess(db) : databaseLeases(db, processId, clock),
    pullTimeoutS: config.pullTimeoutS,
    random: Math.random,
    settleMs: dialect === 'sqlite' ? routerPollMs / 2 : 2 * routerPollMs,
  });
  return {
    start() {
      router?.start();
      if (config.roles.includes('worker')) reconciler.start();
    },
    async stop() {
      await reconciler.stop();
      await router?.stop();
    },
  };
}

function startRouter({ clock, log }: Common, config: Config, certificates: Certificates | null) {
  const { host, routerPort: port, trustedProxies } = config;
  const tls = certificates && { port: config.routerTlsPort, certificates, redirect: config.httpsRedirect };
  return startProxy({ host, port, clock, log, tls, trustedProxies });
}
