// What carries out deployments: the router that people send requests to, and the reconciler behind it.

import type { Config } from '../config.ts';
import { databaseLeases, onlyProcess } from '../deployments/reconcile/leases.ts';
import { Reconciler } from '../deployments/reconcile/reconciler.ts';
import type { EnvironmentKey } from '../environments/key.ts';
import type { Regions } from '../regions/regions.ts';
import { Router, routerPollMs } from '../traffic/agent.ts';
import type { Measurement } from '../traffic/measure/measurements.ts';
import { startProxy } from '../traffic/proxy/proxy.ts';
import type { Certificates } from '../traffic/proxy/tls/certificates.ts';
import type { Common } from './common.ts';

export interface Rollouts {
  /** Where deployed revisions answer; null: not in this process. */
  routerUrl: string | null;
  /** Where their domains answer with TLS; null: not in this process. */
  tlsPort: number | null;
  /** The address of the environment with this host label. */
  urlOf(host: string): string;
  /** Something about this environment may have to be done. */
  kick(key: EnvironmentKey): void;
  /** Something was deleted. */
  changed(): void;
  start(): void;
  stop(): Promise<void>;
}

/** Without certificates there is no listener for TLS. */
export async function createRollouts(
  common: Common,
  config: Config,
  regions: Regions,
  certificates: Certificates | null,
  onMeasured: (measurements: Measurement[]) => void,
): Promise<Rollouts> {
  const { db, dialect, clock, log, processId } = common;
  const tls = certificates && { port: config.routerTlsPort, certificates, redirect: config.httpsRedirect };
  const { host, routerPort: port, trustedProxies } = config;
  const router = config.roles.includes('router')
    ? new Router({
        db,
        clock,
        log,
        dataPlane: await startProxy({ host, port, clock, log, tls, trustedProxies }),
        domain: config.routerDomain,
        id: processId,
        onMeasured,
      })
    : null;
  const reconciler = new Reconciler({
    ...common,
    regions,
    leases: dialect === 'sqlite' ? onlyProcess : databaseLeases(db, processId, clock),
    settleMs: dialect === 'sqlite' ? routerPollMs / 2 : 2 * routerPollMs,
    onRouting: () => router?.wake(),
  });
  const at = (host: string) => `http://${host}.${config.routerDomain}:${router?.port() ?? config.routerPort}`;
  return {
    routerUrl: router && at('*'),
    tlsPort: router?.tlsPort() ?? null,
    urlOf: at,
    kick(key) {
      reconciler.enqueue(key);
      router?.wake();
    },
    changed() {
      reconciler.enqueueSweep();
      router?.wake();
    },
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
