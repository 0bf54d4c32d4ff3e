// The parts of webhooks put together: what sends, what clears away, what rings.
import type { Db } from '../db/database.ts';
import type { DialectName } from '../db/migrations/types.ts';
import type { AddressPolicy } from '../lib/address.ts';
import type { Clock } from '../lib/clock.ts';
import type { Log } from '../lib/log.ts';
import { type Loop, startLoop } from '../lib/loop.ts';
import type { Seal } from '../lib/seal.ts';
import type { Lookup } from './connect.ts';
import { Dispatcher } from './dispatcher.ts';
import { createSender } from './send.ts';
import { sweepOld, sweepStopped } from './sweep.ts';

export interface WebhookTimings {
  /** Waits between attempts. */
  scheduleMs?: readonly number[];
  /** Of one request, from the first packet on. */
  timeoutMs?: number;
  leaseMs?: number;
}

export interface DeliveryParts {
  db: Db;
  dialect: DialectName;
  clock: Clock;
  log: Log;
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

/** Everything about deliveries that one process with the role `worker` does. */
export class Deliveries {
  readonly #parts: DeliveryParts;
  readonly #dispatcher: Dispatcher;
  #sweeper: Loop | null = null;

  constructor(parts: DeliveryParts) {
    const { policy, lookup, timings, ...rest } = parts;
    this.#parts = parts;
    this.#dispatcher = new Dispatcher({
      ...rest,
      sender: createSender({ policy, lookup, timeoutMs: timings.timeoutMs ?? timeoutMs }),
      random: Math.random,
      onDisabled: () => this.sweep(),
      ...(timings.scheduleMs && { schedule: timings.scheduleMs }),
      ...(timings.leaseMs && { leaseMs: timings.leaseMs }),
    });
  }

  async start(): Promise<void> {
    const { db, clock, log, retentionDays } = this.#parts;
    await this.#dispatcher.start();
    this.#sweeper = startLoop({
      intervalMs: sweepEveryMs,
      step: async () => {
        const nowMs = clock.now();
        const more = [await sweepStopped(db, nowMs), await sweepOld(db, nowMs - retentionDays * dayMs)];
        if (more.includes(true)) this.sweep();
      },
      onError: (error) => log.error({ err: error, loop: 'clearing away deliveries' }, 'a loop failed'),
    });
  }

  wake(): void {
    this.#dispatcher.wake();
  }

  sweep(): void {
    this.#sweeper?.wake();
  }

  async stop(): Promise<void> {
    await this.#sweeper?.stop();
    await this.#dispatcher.stop();
  }
}
