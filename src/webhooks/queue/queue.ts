// The queue of deliveries as the dispatcher sees it. There is one implementation for each database; which one is used
// is decided here and nowhere else. `test/both-databases/webhooks/queue.test.ts` says what both have to do.
import type { Db } from '../../db/database.ts';
import type { HealthChange } from '../endpoints/mark-health.ts';
import type { Claimed, ClaimRequest, Lease } from './claim.ts';
import type { Outcome } from './outcome.ts';
import { sqliteQueue } from './sqlite.ts';

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

interface QueueOptions {
  db: Db;
  /** null: SQLite. */
  databaseUrl: string | null;
  onConnectionLost(error: Error): void;
}

export async function openQueue({ db, databaseUrl, onConnectionLost }: QueueOptions): Promise<DeliveryQueue> {
  if (databaseUrl === null) return sqliteQueue(db);
  // Loaded only where it is used: a start on SQLite does not wait for the PostgreSQL driver.
  const { postgresQueue } = await import('./postgres.ts');
  return postgresQueue(databaseUrl, onConnectionLost);
}
