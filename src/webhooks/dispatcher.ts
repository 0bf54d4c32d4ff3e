// Sends what is due: look who is waiting → claim as much as each has room for → send → write down how it went. Looking
// is woken by commits, by room that became free, and by a slow clock for what is due later; it never waits for a
// receiver. What is finished while one batch is being written makes the next batch.
import type { Db } from '../db/database.ts';
import type { DialectName } from '../db/migrations/types.ts';
import type { Clock } from '../lib/clock.ts';
import type { Log } from '../lib/log.ts';
import { type Loop, startLoop } from '../lib/loop.ts';
import type { Seal } from '../lib/seal.ts';
import { type Claimed, claimDeliveries, type Endpoint, listWaiting, releaseAll, releaseDeliveries } from './claim.ts';
import { completeDeliveries, type HealthChange, markHealth, type Outcome } from './complete.ts';
import { maxPerEndpoint, roomFor } from './health.ts';
import { defaultScheduleMs, readRetryAfter, retryDelayMs } from './retry.ts';
import { OpenedSecrets } from './secret.ts';
import type { Sender, Sent } from './send.ts';
import { headerNames, signedHeaders } from './signature.ts';

export interface DispatcherParts {
  db: Db;
  dialect: DialectName;
  clock: Clock;
  log: Log;
  seal: Seal;
  sender: Sender;
  signatureHeader: string;
  userAgent: string;
  /** Unlike that of any other process. */
  id: string;
  random: () => number;
  schedule?: readonly number[];
  leaseMs?: number;
  onAttempt(succeeded: boolean): void;
  /** Endpoints that were just disabled: what is pending for them is to be given up. */
  onDisabled(): void;
}

const lookEveryMs = 1000;
const maxInFlight = 1000;
/** Longer than a request may take, with time to write down how it went. */
const defaultLeaseMs = 30_000;
const stopWithinMs = 5000;
const writeEveryMs = 5;
/** Answers that are kept take up room: a batch of the longest is some megabytes. */
const maxBatch = 200;

interface Finished {
  outcome: Outcome;
  gone: boolean;
  /** The endpoint was failing when this was claimed. */
  failing: boolean;
  strict: boolean;
}

interface InFlight {
  claimed: Claimed;
  sentAt: number;
}

export class Dispatcher {
  readonly #parts: DispatcherParts;
  readonly #secrets: OpenedSecrets;
  readonly #names: ReturnType<typeof headerNames>;
  /** By endpoint; each set in the order of sending. */
  readonly #inFlight = new Map<string, Set<InFlight>>();
  readonly #urls = new Map<string, URL>();
  #count = 0;
  #claims = 0;
  #turn = 0;
  /** Someone had more to send than room. */
  #crowded = false;
  #stopping = false;
  #loop: Loop | null = null;
  #finished: Finished[] = [];
  #writing: Promise<void> | null = null;
  #idle: (() => void) | null = null;

  constructor(parts: DispatcherParts) {
    this.#parts = parts;
    this.#secrets = new OpenedSecrets(parts.seal);
    this.#names = headerNames(parts.signatureHeader);
  }

  async start(): Promise<void> {
    const { db, dialect, clock, log } = this.#parts;
    if (dialect === 'sqlite') await releaseAll(db, clock.now());
    this.#loop = startLoop({
      intervalMs: lookEveryMs,
      step: () => this.#look(),
      onError: (error) => log.error({ err: error, loop: 'webhooks' }, 'a loop failed'),
    });
  }

  wake(): void {
    this.#loop?.wake();
  }

  /** What is under way gets a moment; what has no answer by then is due again at once, for whoever comes next. */
  async stop(): Promise<void> {
    this.#stopping = true;
    await this.#loop?.stop();
    if (this.#count > 0) {
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#idle = resolve;
      const timer = setTimeout(resolve, stopWithinMs);
      await promise;
      clearTimeout(timer);
    }
    const unanswered = [...this.#inFlight.values()].flatMap((set) => [...set].map(({ claimed }) => claimed));
    this.#inFlight.clear();
    while (this.#writing) await this.#writing;
    await releaseDeliveries(this.#parts.db, unanswered, this.#parts.clock.now()).catch((error) =>
      this.#parts.log.warn({ err: error }, 'deliveries not released'),
    );
    await this.#parts.sender.close();
  }

  async #look(): Promise<void> {
    const { db, dialect, clock, leaseMs = defaultLeaseMs } = this.#parts;
    if (this.#stopping || this.#count >= maxInFlight) return;
    this.#crowded = false;
    const nowMs = clock.now();
    const waiting = (await listWaiting(db)).filter(({ dueAt }) => dueAt <= nowMs);
    const wanted = this.#share(waiting, nowMs);
    if (wanted.length === 0) return;
    const lease = `${this.#parts.id}.${++this.#claims}`;
    const claimed = await claimDeliveries({ db, dialect, leaseMs }, wanted, lease, nowMs);
    const endpoints = new Map(wanted.map(({ endpoint, room }) => [endpoint.id, { endpoint, room }]));
    for (const delivery of claimed) {
      const of = endpoints.get(delivery.webhook_id)!;
      if (--of.room === 0) this.#crowded = true;
      void this.#send(of.endpoint, delivery);
    }
  }

  /** Who may have how many more. Where there is not enough for all, another one begins each time. */
  #share(waiting: Endpoint[], nowMs: number): { endpoint: Endpoint; room: number }[] {
    let left = maxInFlight - this.#count;
    const wanted = [];
    const start = this.#turn++;
    for (let n = 0; n < waiting.length && left > 0; n++) {
      const endpoint = waiting[(start + n) % waiting.length]!;
      const flying = this.#inFlight.get(endpoint.id);
      const oldestAt = flying?.values().next().value?.sentAt ?? null;
      const load = { inFlight: flying?.size ?? 0, oldestAt };
      const room = Math.min(left, roomFor(endpoint, endpoint.ordering === 'strict', load, nowMs));
      if (room === 0) {
        this.#crowded = true;
        continue;
      }
      wanted.push({ endpoint, room });
      left -= room;
    }
    return wanted;
  }

  async #send(endpoint: Endpoint, claimed: Claimed): Promise<void> {
    const { clock, sender, userAgent } = this.#parts;
    const sentAt = clock.now();
    const flying = this.#inFlight.get(endpoint.id) ?? new Set<InFlight>();
    this.#inFlight.set(endpoint.id, flying);
    const one = { claimed, sentAt };
    flying.add(one);
    this.#count++;
    let sent: Sent;
    try {
      const body = claimed.body ?? '';
      const headers = {
        'content-type': 'application/json; charset=utf-8',
        'user-agent': userAgent,
        ...signedHeaders(this.#names, {
          eventId: claimed.event_id,
          deliveryId: claimed.id,
          type: claimed.type,
          body,
          secrets: this.#secretsOf(endpoint, sentAt),
          timestampS: Math.floor(sentAt / 1000),
        }),
      };
      sent = await sender.send(this.#urlOf(endpoint.url), headers, body);
    } catch (error) {
      this.#parts.log.error({ err: error, delivery_id: claimed.id }, 'a delivery could not be sent');
      sent = { status: null, error: 'The service could not make the request.', answer: null, retryAfter: undefined };
    }
    this.#count--;
    // Gone from the set: stop() has given the delivery back already, so how it went is no longer ours to tell.
    if (this.#inFlight.get(endpoint.id) !== flying) return;
    flying.delete(one);
    if (flying.size === 0) this.#inFlight.delete(endpoint.id);
    this.#finish(endpoint, one, sent);
    if (this.#count === 0) this.#idle?.();
  }

  #secretsOf(endpoint: Endpoint, nowMs: number): string[] {
    const { id, secretSealed, oldSecretSealed, oldSecretUntil } = endpoint;
    const secrets = [this.#secrets.open(id, secretSealed)];
    if (oldSecretSealed !== null && (oldSecretUntil ?? 0) > nowMs)
      secrets.push(this.#secrets.open(id, oldSecretSealed));
    return secrets;
  }

  #urlOf(text: string): URL {
    let url = this.#urls.get(text);
    if (!url) {
      if (this.#urls.size >= 10_000) this.#urls.clear();
      url = new URL(text);
      this.#urls.set(text, url);
    }
    return url;
  }

  #finish(endpoint: Endpoint, { claimed, sentAt }: InFlight, { status, error, answer, retryAfter }: Sent): void {
    const { clock, random, schedule = defaultScheduleMs } = this.#parts;
    const nowMs = clock.now();
    const succeeded = status !== null && status >= 200 && status < 300;
    const gone = status === 410;
    const tried = claimed.tried + 1;
    const delayMs =
      succeeded || gone ? null : retryDelayMs(tried, readRetryAfter(retryAfter, nowMs), random(), schedule);
    const outcome: Outcome = {
      id: claimed.id,
      webhook_id: claimed.webhook_id,
      lease: claimed.lease,
      number: claimed.attempts + 1,
      at: sentAt,
      duration_ms: Math.max(0, nowMs - sentAt),
      status,
      error,
      answer,
      state: succeeded ? 'succeeded' : delayMs === null ? 'failed' : 'pending',
      tried,
      due_at: nowMs + (delayMs ?? 0),
      finished_at: delayMs === null ? nowMs : null,
    };
    this.#parts.onAttempt(succeeded);
    this.#finished.push({ outcome, gone, failing: endpoint.failures > 0, strict: endpoint.ordering === 'strict' });
    this.#writing ??= this.#write();
    // Half of what it may have is a batch worth looking for.
    const inFlight = this.#inFlight.get(endpoint.id)?.size ?? 0;
    if (this.#crowded && inFlight <= maxPerEndpoint / 2) this.wake();
  }

  async #write(): Promise<void> {
    const { db, dialect, clock, log, random } = this.#parts;
    while (this.#finished.length > 0) {
      // What finishes in the next moment goes along; who waits for an answer does not wait for this.
      const lingerMs = this.#count > 0 && this.#finished.length < maxBatch ? writeEveryMs : 0;
      await new Promise((resolve) => setTimeout(resolve, lingerMs));
      const batch = this.#finished.slice(0, maxBatch);
      try {
        await completeDeliveries(
          db,
          dialect,
          batch.map(({ outcome }) => outcome),
        );
        this.#finished.splice(0, batch.length);
        if (batch.some(({ strict }) => strict)) this.wake();
        this.#wakeFor(batch);
        const changed = healthChanges(batch);
        if (changed.length > 0 && (await markHealth(db, changed, clock.now(), random())).length > 0) {
          this.#parts.onDisabled();
        }
      } catch (error) {
        // Nothing is lost: what is not written down is sent again once its lease has run out. Until then, try again.
        log.error({ err: error }, 'how deliveries went could not be written');
        if (this.#stopping) break;
        await new Promise((resolve) => setTimeout(resolve, 1000));
      }
    }
    this.#writing = null;
  }

  /** The slow clock is too slow for what is due sooner than it ticks. */
  #wakeFor(batch: Finished[]): void {
    const nowMs = this.#parts.clock.now();
    for (const { outcome } of batch) {
      const inMs = outcome.due_at - nowMs;
      if (outcome.state === 'pending' && inMs < lookEveryMs)
        setTimeout(() => this.wake(), Math.max(0, inMs) + 2).unref();
    }
  }
}

/** By endpoint, where something failed or an endpoint that was failing no longer does. */
function healthChanges(batch: Finished[]): HealthChange[] {
  const changes = new Map<string, HealthChange & { matters: boolean }>();
  for (const { outcome, gone, failing } of batch) {
    const webhookId = outcome.webhook_id;
    const change = changes.get(webhookId) ?? { webhookId, succeeded: 0, failed: 0, gone: false, matters: false };
    changes.set(webhookId, change);
    if (outcome.state === 'succeeded') change.succeeded++;
    else change.failed++;
    change.gone ||= gone;
    change.matters ||= failing || outcome.state !== 'succeeded';
  }
  return [...changes.values()].filter(({ matters }) => matters);
}
