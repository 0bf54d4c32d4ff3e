// What an answer, or the lack of one, means for a delivery and its endpoint; and the writer that saves outcomes in
// batches. What finishes while one batch is being written becomes the next.
import { type Clock, deadlineOf } from '../lib/clock.ts';
import type { Log } from '../lib/log.ts';
import { readRetryAfter } from '../lib/retry-after.ts';
import type { DeliveryQueue, HealthChange, Outcome } from './delivery-queue.ts';
import { retryDelayMs } from './delivery-retry.ts';
import type { Flight } from './flights.ts';
import type { Sent } from './send-delivery.ts';

interface OutcomeWriterParts {
  queue: DeliveryQueue;
  clock: Clock;
  log: Log;
  random: () => number;
  /** The database has these outcomes now. */
  onWritten(batch: Finished[]): void;
  /** Some endpoints were just disabled: what is pending for them is to be given up. */
  onDisabled(): void;
}

const lingerMs = 15;
const tryAgainAfterMs = 1000;
/** The stored answers take memory: a batch of the longest ones is some megabytes. */
const maxBatch = 200;

export class OutcomeWriter {
  readonly #parts: OutcomeWriterParts;
  #finished: Finished[] = [];
  #writing: Promise<void> | null = null;
  #stopping = false;

  constructor(parts: OutcomeWriterParts) {
    this.#parts = parts;
  }

  add(finished: Finished): void {
    this.#finished.push(finished);
    this.#writing ??= this.#write();
  }

  /** Resolves once everything added is written, or when the database cannot be reached. */
  async stop(): Promise<void> {
    this.#stopping = true;
    while (this.#writing) await this.#writing;
  }

  async #write(): Promise<void> {
    while (this.#finished.length > 0) {
      await this.#linger();
      const batch = this.#finished.slice(0, maxBatch);
      try {
        await this.#writeBatch(batch);
      } catch (error) {
        // Nothing is lost: should this process end before it can write them, their deliveries are sent again.
        this.#parts.log.error({ err: error }, 'the outcomes of deliveries could not be written');
        if (this.#stopping) break;
        await new Promise((resolve) => setTimeout(resolve, tryAgainAfterMs));
      }
    }
    this.#writing = null;
  }

  /**
   * Waits a moment for more outcomes to join the batch, unless one of them is urgent: in a strict order the next
   * delivery waits for it, and an endpoint that fails should get fewer deliveries from now on.
   */
  #linger(): Promise<unknown> {
    const urgent =
      this.#stopping ||
      this.#finished.length >= maxBatch ||
      this.#finished.some(({ strict, succeeded }) => strict || !succeeded);
    return new Promise((resolve) => (urgent ? setImmediate(resolve) : setTimeout(resolve, lingerMs)));
  }

  async #writeBatch(batch: Finished[]): Promise<void> {
    const { queue, clock, random } = this.#parts;
    await queue.complete(batch.map(({ outcome }) => outcome));
    this.#finished.splice(0, batch.length);
    this.#parts.onWritten(batch);
    const changed = healthChanges(batch);
    if (changed.length === 0) return;
    const disabled = await queue.markHealth(changed, deadlineOf(clock).now(), random());
    if (disabled.length > 0) this.#parts.onDisabled();
  }
}

export interface Finished {
  outcome: Outcome;
  succeeded: boolean;
  gone: boolean;
  /** The endpoint was failing when this was claimed. */
  failing: boolean;
  strict: boolean;
}

/**
 * `at`: the time of day at which it was sent; `nowMs` is by the clock that retries wait by; `random` is from 0 to 1.
 */
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
function healthChanges(batch: Finished[]): HealthChange[] {
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
