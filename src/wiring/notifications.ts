// How others learn of events: deliveries to webhooks, and the live stream.
import type { Config } from '../config.ts';
import { eventRoutes } from '../events/routes.ts';
import { EventStreams } from '../events/stream.ts';
import type { ServedRoute } from '../http/api/route.ts';
import { isLoopback, parseAddress } from '../lib/address.ts';
import { version } from '../version.ts';
import { DeliveryWorker, type WebhookTimings } from '../webhooks/delivery-worker.ts';
import { webhookRoutes } from '../webhooks/endpoints/routes.ts';
import { type Lookup, systemLookup } from '../webhooks/sending/connect.ts';
import type { Common } from './common.ts';

export interface NotificationOverrides {
  webhookTimings?: WebhookTimings;
  /** How names of webhooks become addresses. */
  lookup?: Lookup;
}

interface Notifications {
  routes: ServedRoute[];
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
  const { dialect, clock, processId } = common;
  const policy = { allowLoopback: listensOnLoopback(config.host), allowed: config.webhookAllowCidrs };
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
    routes: [...webhookRoutes({ ...common, policy, lookup }), ...eventRoutes({ dialect, clock, streams })],
    async start() {
      if (config.roles.includes('worker')) await deliveries.start();
    },
    closeStreams: () => streams.stop(),
    stop: () => deliveries.stop(),
  };
}

/** Who can reach the service can reach what runs beside it anyway. */
function listensOnLoopback(host: string): boolean {
  const address = parseAddress(host);
  return host === 'localhost' || (address !== null && isLoopback(address));
}
