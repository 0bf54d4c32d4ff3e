// How others learn of what happens: deliveries to webhooks, the live stream of events, alerts, and metrics for Prometheus.

import { alertRoutes } from '../alerts/alert-routes.ts';
import { RevisionMetrics } from '../alerts/revision-metrics.ts';
import { Watcher } from '../alerts/watcher.ts';
import type { Config } from '../config.ts';
import { eventRoutes } from '../events/event-routes.ts';
import { EventStreams } from '../events/event-streams.ts';
import type { ServedRoute } from '../http/api/served-route.ts';
import type { Measurement } from '../traffic/measurements.ts';
import { version } from '../version.ts';
import { DeliveryWorker, type WebhookTimings } from '../webhooks/delivery-worker.ts';
import { isLoopbackHost, type Lookup, mayReachLoopback, systemLookup } from '../webhooks/receiver-addresses.ts';
import { webhookRoutes } from '../webhooks/webhook-routes.ts';
import type { Common } from './common.ts';

export interface NotificationOverrides {
  webhookTimings?: WebhookTimings;
  /** How names of webhooks become addresses. */
  lookup?: Lookup;
}

interface Notifications {
  routes: ServedRoute[];
  /** The API accepts requests at this address, which may be another than that of the settings. */
  listensAt(host: string): void;
  start(): Promise<void>;
  /** Ends what would otherwise stay open as long as its client likes. */
  closeStreams(): void;
  stop(): Promise<void>;
}

export function createNotifications(
  common: Common,
  config: Config,
  { webhookTimings = {}, lookup = systemLookup }: NotificationOverrides,
  onAttempt: (succeeded: boolean) => void,
): Notifications {
  const { dialect, processId } = common;
  const { host, trustedProxies, apiUrl, baseUrl } = config;
  const exposure = { host, servesApi: config.roles.includes('api'), trustedProxies, urls: [apiUrl, baseUrl] };
  const policy = { allowLoopback: mayReachLoopback(exposure), allowed: config.webhookAllowCidrs };
  const streams = new EventStreams(common);
  const deliveries = new DeliveryWorker({
    ...common,
    databaseUrl: config.databaseUrl,
    policy,
    lookup,
    signatureHeader: config.signatureHeader,
    userAgent: `Sluice/${version}`,
    id: processId,
    retentionDays: config.eventRetentionDays,
    timings: webhookTimings,
    onAttempt,
  });
  return {
    routes: [...webhookRoutes({ ...common, policy, lookup }), ...eventRoutes({ dialect, streams })],
    listensAt(address) {
      policy.allowLoopback &&= isLoopbackHost(address);
    },
    async start() {
      if (config.roles.includes('worker')) await deliveries.start();
    },
    closeStreams: () => streams.stop(),
    stop: () => deliveries.stop(),
  };
}

interface Alerts {
  routes: ServedRoute[];
  /** What a router of this process saw. */
  measured(router: string, measurements: Measurement[]): void;
  /** For Prometheus. */
  deploymentMetrics(): Promise<string>;
  start(): void;
  stop(): Promise<void>;
}

export function createAlerts(common: Common, config: Config): Alerts {
  const metrics = new RevisionMetrics(common);
  const watcher = new Watcher(common);
  return {
    routes: alertRoutes(common),
    measured: (router, measurements) => metrics.note(router, measurements),
    deploymentMetrics: () => metrics.text(),
    start() {
      if (config.roles.includes('worker')) watcher.start();
    },
    stop: () => watcher.stop(),
  };
}
