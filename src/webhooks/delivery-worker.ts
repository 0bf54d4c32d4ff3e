// What a process with the role `worker` does for webhooks: it sends deliveries and clears away old ones. Which database
// the queue is in is decided here and nowhere else.
import type { Db } from '../db/database.ts';
import type { RetentionClock } from '../db/retention-clock.ts';
import type { AddressPolicy } from '../lib/address.ts';
import type { Clock } from '../lib/clock.ts';
import type { IdSource } from '../lib/ids.ts';
import type { Log } from '../lib/log.ts';
import type { Loop, Loops } from '../lib/loops.ts';
import type { Seal } from '../lib/seal.ts';
import { subscribe } from '../signals/signals.ts';
import type { DeliveryQueue } from './delivery-queue.ts';
import { type SweptEvents, sweepOld, sweepStopped } from './delivery-sweep.ts';
import { DeliveryDispatcher } from './dispatcher.ts';
import type { Lookup } from './receiver-addresses.ts';
import { createSender } from './send-delivery.ts';
import { sqliteQueue } from './sqlite-queue.ts';

export interface WebhookTimings {
  /** The waits between attempts. */
  scheduleMs?: readonly number[];
  /** Of one request, from connecting to the end of the answer. */
  timeoutMs?: number;
  leaseMs?: number;
}

interface DeliveryWorkerParts {
  db: Db;
  /** null: SQLite. */
  databaseUrl: string | null;
  ids: IdSource;
  clock: Clock;
  retention: RetentionClock;
  log: Log;
  loops: Loops;
  seal: Seal;
  policy: AddressPolicy;
  lookup: Lookup;
  signatureHeader: string;
  userAgent: string;
  id: string;
  retentionDays: number;
  timings: WebhookTimings;
  onAttempt(succeeded: boolean): void;
}

const timeoutMs = 15_000;
const sweepEveryMs = 60_000;
const dayMs = 24 * 3600_000;

export class DeliveryWorker {
  readonly #parts: DeliveryWorkerParts;
  #queue: DeliveryQueue | null = null;
  #dispatcher: DeliveryDispatcher | null = null;
  #sweeper: Loop | null = null;
  #unsubscribe: (() => void)[] = [];
  readonly #swept: SweptEvents = { after: '' };

  constructor(parts: DeliveryWorkerParts) {
    this.#parts = parts;
  }

  async start(): Promise<void> {
    const { db, databaseUrl, policy, lookup, timings, ...rest } = this.#parts;
    const { log, loops } = rest;
    const onConnectionLost = (error: Error) => log.warn({ err: error }, 'a database connection was lost');
    this.#queue = await openQueue({ db, databaseUrl, onConnectionLost });
    this.#dispatcher = new DeliveryDispatcher({
      ...rest,
      db,
      queue: this.#queue,
      sender: createSender({ policy, lookup, timeoutMs: timings.timeoutMs ?? timeoutMs }),
      random: Math.random,
      onDisabled: () => this.#sweeper?.wake(),
      ...(timings.scheduleMs && { schedule: timings.scheduleMs }),
      ...(timings.leaseMs && { leaseMs: timings.leaseMs }),
    });
    await this.#dispatcher.start();
    const name = 'clearing away deliveries';
    this.#sweeper = loops.start({ name, intervalMs: sweepEveryMs, step: () => this.#sweep() });
    const claim = () => this.#dispatcher?.wake();
    this.#unsubscribe = [
      subscribe(db, 'events', claim),
      subscribe(db, 'deliveries', claim),
      subscribe(db, 'removals', () => this.#sweeper?.wake()),
    ];
  }

  async #sweep(): Promise<void> {
    const { db, clock, retention, retentionDays } = this.#parts;
    const oldBefore = (await retention.now()) - retentionDays * dayMs;
    const more = [await sweepStopped(db, clock.now()), await sweepOld(db, oldBefore, this.#swept)];
    if (more.includes(true)) this.#sweeper?.wake();
  }

  async stop(): Promise<void> {
    for (const unsubscribe of this.#unsubscribe) unsubscribe();
    await this.#sweeper?.stop();
    await this.#dispatcher?.stop();
    await this.#queue?.close();
  }
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
  const { postgresQueue } = await import('./postgres-queue.ts');
  return postgresQueue(databaseUrl, onConnectionLost);
}
