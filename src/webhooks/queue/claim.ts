// What a claim asks for and what it gives. A claim is a lease: until it runs out no other process takes the delivery,
// and only its holder can report how the delivery went.
import type { DeliveryType } from '../../contract/deliveries.ts';
import type { Ordering } from '../../contract/webhooks.ts';
import type { Load } from '../endpoints/health.ts';

export interface ClaimRequest {
  /** What this process has under way, by endpoint. */
  loads: ReadonlyMap<string, Load>;
  /** The most deliveries to claim, over all endpoints. */
  limit: number;
  /** Endpoints with a higher id than this come first, so that every endpoint gets its turn. */
  after: string;
  lease: string;
  nowMs: number;
  untilMs: number;
}

/** Where a delivery goes, as of the moment it was claimed. */
export interface Receiver {
  url: string;
  ordering: Ordering;
  secret_sealed: string;
  old_secret_sealed: string | null;
  old_secret_until: number | null;
  /** In a row, since the last success. */
  failures: number;
}

/** The delivery, and what its holder knows it by. */
export interface Lease {
  id: string;
  lease: string;
}

export interface Claimed extends Lease, Receiver {
  webhook_id: string;
  event_id: string;
  type: DeliveryType;
  attempts: number;
  tried: number;
  body: string | null;
}

/** A lease in SQL: it must still be the current one of its delivery. */
export const leaseFields = { id: 'text', lease: 'text' } as const;

export const leasesOf = (leases: readonly Lease[]): string =>
  JSON.stringify(leases.map(({ id, lease }) => ({ id, lease })));
