// The queue of deliveries as the dispatcher sees it, and what its two implementations share (sqlite-queue.ts,
// postgres-queue.ts). `test/both-databases/webhooks/queue.test.ts` says what both have to do.
//
// A claim is a lease: until it runs out no other process takes the delivery, and only its holder can report how the
// delivery went. Each attempt becomes a row, and the delivery moves on.
import type { DeliveryState, DeliveryType } from '../contract/deliveries.ts';
import type { Ordering } from '../contract/webhooks.ts';
import type { Db } from '../db/database.ts';
import { changesOne } from '../db/guarded.ts';
import { type Health, hasFailedTooLong, healthAfter, type Load, type Round } from './endpoint-health.ts';

export interface DeliveryQueue {
  /**
   * To be called once, before the first claim. If no other process can hold leases, it ends those of a process that
   * crashed, and makes deliveries due that a wrong clock has put further into the future than `longestDelayMs`.
   */
  recover(nowMs: number, longestDelayMs: number): Promise<void>;

  /**
   * Leases deliveries that are due, as many as each account and each of its enabled endpoints has room for. Where the order is strict, that is
   * the first one pending and no other: while it waits for a retry or is being sent, all behind it wait.
   */
  claim(request: ClaimRequest): Promise<Claimed[]>;

  /** They were not sent after all, and are due again at once. A lease that was lost meanwhile is left alone. */
  release(leases: readonly DeliveryLease[]): Promise<void>;

  /**
   * They are still being sent, or their outcomes are not written yet. A lease that was lost meanwhile is left alone.
   */
  renew(leases: readonly DeliveryLease[], untilMs: number): Promise<void>;

  /** Writes attempts and what becomes of their deliveries. An outcome whose lease was lost meanwhile is not written. */
  complete(outcomes: readonly Outcome[]): Promise<void>;

  /** Updates the health of endpoints after some outcomes. Returns the ids of the webhooks that this disabled. */
  markHealth(changes: HealthChange[], nowMs: number, random: number): Promise<string[]>;

  /** Closes the connections that are the queue's own. */
  close(): Promise<void>;
}

export interface ClaimRequest {
  /** What this process has under way, by endpoint. */
  loads: ReadonlyMap<string, Load>;
  /** The most deliveries this process may have under way, over all accounts: `shareOf` says how many one may have. */
  most: number;
  /** The most deliveries of one account in this claim: claiming and sending them is done in one piece. */
  atOnce: number;
  /** What this process has under way, by account. */
  accounts: ReadonlyMap<string, AccountLoad>;
  lease: string;
  nowMs: number;
  untilMs: number;
}

export interface AccountLoad {
  taken: number;
  /** Its endpoints with a higher id than this come first, so that each gets its turn. */
  after: string;
}

/**
 * How many deliveries one of `accounts` accounts may have under way. As much stays free: an account that has had nothing
 * to send for a while finds room at once, whatever the others do.
 */
export const shareOf = (most: number, accounts: number): number => Math.max(1, Math.floor(most / (accounts + 1)));

/** Where a delivery goes, as of the moment it was claimed. */
export interface Receiver {
  account_id: string;
  url: string;
  ordering: Ordering;
  secret_sealed: string;
  old_secret_sealed: string | null;
  old_secret_until: number | null;
  /** In a row, since the last success. */
  failures: number;
}

/** The delivery, and what its holder knows it by. */
export interface DeliveryLease {
  id: string;
  lease: string;
}

export interface Claimed extends DeliveryLease, Receiver {
  webhook_id: string;
  event_id: string;
  type: DeliveryType;
  attempts: number;
  tried: number;
  body: string | null;
}

/** A lease in SQL: it must still be the current one of its delivery. */
export const leaseFields = { id: 'text', lease: 'text' } as const;

export const leasesOf = (leases: readonly DeliveryLease[]): string =>
  JSON.stringify(leases.map(({ id, lease }) => ({ id, lease })));

export interface Outcome {
  id: string;
  webhook_id: string;
  lease: string;
  /** Of the attempt. */
  number: number;
  at: number;
  duration_ms: number;
  status: number | null;
  error: string | null;
  answer: string | null;
  /** Of the delivery from now on. */
  state: DeliveryState;
  tried: number;
  due_at: number;
  finished_at: number | null;
}

/** All columns but the webhook, which a delivery never changes. */
export const outcomeFields = {
  id: 'text',
  lease: 'text',
  number: 'bigint',
  at: 'bigint',
  duration_ms: 'bigint',
  status: 'bigint',
  error: 'text',
  answer: 'text',
  state: 'text',
  tried: 'bigint',
  due_at: 'bigint',
  finished_at: 'bigint',
} as const satisfies Record<keyof Omit<Outcome, 'webhook_id'>, 'text' | 'bigint'>;

/** Of the delivery, from an outcome `r`. */
export const deliveryChanges = `state = r.state, attempts = r.number, tried = r.tried, due_at = r.due_at,
  finished_at = r.finished_at, lease = null, lease_until = 0`;

/** To be followed by where the outcomes `r` come from. */
export const insertAttempts = `insert into attempt (delivery_id, number, at, duration_ms, status, error, answer)
  select r.id, r.number, r.at, r.duration_ms, r.status, r.error, r.answer`;

export interface HealthChange extends Round {
  webhookId: string;
  /** It answered 410: it wants no more deliveries. */
  gone: boolean;
}

/** Gives the ids of the webhooks that this disabled. */
export async function markHealth(db: Db, changes: HealthChange[], nowMs: number, random: number): Promise<string[]> {
  const disabled: string[] = [];
  for (const change of changes) {
    const isDisabled = await db.transaction().execute((tx) => markOne(tx, change, nowMs, random));
    if (isDisabled) disabled.push(change.webhookId);
  }
  return disabled;
}

/** Gives whether this disabled the webhook. One that is not enabled is left alone. */
async function markOne(tx: Db, { webhookId, gone, ...round }: HealthChange, nowMs: number, random: number) {
  const row = await tx
    .selectFrom('webhook')
    .select(['failures', 'failing_since', 'probe_at'])
    .where('id', '=', webhookId)
    .where('state', '=', 'enabled')
    .executeTakeFirst();
  if (!row) return false;
  const before: Health = { failures: row.failures, failingSince: row.failing_since, probeAt: row.probe_at };
  const after = healthAfter(before, round, nowMs, random);
  const reason = gone ? 'The receiver answered 410 Gone.' : hasFailedTooLong(after, nowMs) ? failedTooLong : null;
  const changed = await changesOne(
    tx
      .updateTable('webhook')
      .set((e) => ({
        failures: after.failures,
        failing_since: after.failingSince,
        probe_at: after.probeAt,
        ...(reason && { state: 'disabled' as const, disabled_reason: reason, version: e('version', '+', 1) }),
      }))
      .where('id', '=', webhookId)
      .where('state', '=', 'enabled'),
  );
  return reason !== null && changed;
}

const failedTooLong = 'No delivery succeeded for five days.';
