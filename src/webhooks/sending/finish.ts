// What an answer, or the lack of one, means for the delivery and for its endpoint.
import { readRetryAfter } from '../../lib/retry-after.ts';
import type { HealthChange } from '../endpoints/mark-health.ts';
import type { Outcome } from '../queue/outcome.ts';
import type { Flight } from './flights.ts';
import { retryDelayMs } from './retry.ts';
import type { Sent } from './send.ts';

export interface Finished {
  outcome: Outcome;
  succeeded: boolean;
  gone: boolean;
  /** The endpoint was failing when this was claimed. */
  failing: boolean;
  strict: boolean;
}

/** `at`: the time of day at which it was sent; `nowMs` is by the clock that retries wait by; `random` is from 0 to 1. */
export function finish(
  { claimed, sentAt }: Flight,
  { status, error, answer, retryAfter }: Sent,
  { at, nowMs }: { at: number; nowMs: number },
  random: number,
  schedule: readonly number[],
): Finished {
  const succeeded = status !== null && status >= 200 && status < 300;
  const gone = status === 410;
  const tried = claimed.tried + 1;
  const durationMs = Math.max(0, nowMs - sentAt);
  const delayMs =
    succeeded || gone ? null : retryDelayMs(tried, readRetryAfter(retryAfter, at + durationMs), random, schedule);
  const outcome: Outcome = {
    id: claimed.id,
    webhook_id: claimed.webhook_id,
    lease: claimed.lease,
    number: claimed.attempts + 1,
    at,
    duration_ms: durationMs,
    status,
    error,
    answer,
    state: succeeded ? 'succeeded' : delayMs === null ? 'failed' : 'pending',
    tried,
    due_at: nowMs + (delayMs ?? 0),
    finished_at: delayMs === null ? at + durationMs : null,
  };
  return { outcome, succeeded, gone, failing: claimed.failures > 0, strict: claimed.ordering === 'strict' };
}

/** Only endpoints where something failed, or that were failing: one that stays well costs no write. */
export function healthChanges(batch: Finished[]): HealthChange[] {
  const changes = new Map<string, HealthChange & { matters: boolean }>();
  for (const { outcome, succeeded, gone, failing } of batch) {
    const webhookId = outcome.webhook_id;
    const change = changes.get(webhookId) ?? { webhookId, succeeded: 0, failed: 0, gone: false, matters: false };
    changes.set(webhookId, change);
    if (succeeded) change.succeeded++;
    else change.failed++;
    change.gone ||= gone;
    change.matters ||= failing || !succeeded;
  }
  return [...changes.values()].filter(({ matters }) => matters);
}
