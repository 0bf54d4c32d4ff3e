// What a claim asks for and what it gives. A claim is a lease: until it runs out no other process takes the delivery,
// and only its holder can report how the delivery went.
import type { DeliveryType } from '../../contract/deliveries.ts';
import type { Ordering } from '../../contract/webhooks.ts';
import type { Load } from '../endpoints/health.ts';
import type { HealthChange } from '../endpoints/mark-health.ts';
import type { Outcome } from './outcome.ts';

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

export interface DeliveryQueue {
  /**
   * To be called once, before the first claim: where no other process can hold any, ends the leases of one that crashed,
   * and makes due what its clock, wrong at that time, has put further ahead than `longestDelayMs`.
   */
  recover(nowMs: number, longestDelayMs: number): Promise<void>;

  /**
   * Leases deliveries that are due, as many as each enabled endpoint has room for. Where the order is strict, that is
   * the first one pending and no other: while it waits for a retry or is being sent, all behind it wait.
   */
  claim(request: ClaimRequest): Promise<Claimed[]>;

  /** They were not sent after all, and are due again at once. A lease that was lost meanwhile is left alone. */
  release(leases: readonly Lease[]): Promise<void>;

  /** They are still being sent, or their outcomes are not written yet. A lease that was lost meanwhile is left alone. */
  renew(leases: readonly Lease[], untilMs: number): Promise<void>;

  /** Writes attempts and what becomes of their deliveries. An outcome whose lease was lost meanwhile is not written. */
  complete(outcomes: readonly Outcome[]): Promise<void>;

  /** How endpoints are doing after some outcomes. Gives the ids of the webhooks that this disabled. */
  markHealth(changes: HealthChange[], nowMs: number, random: number): Promise<string[]>;

  /** Closes the connections that are the queue's own. */
  close(): Promise<void>;
}
