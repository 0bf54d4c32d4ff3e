// Sends what is due: claim as many deliveries as each endpoint has room for → send them → write the outcomes. Commits
// and freed room wake the claiming; a timer does for what is due later. Claiming never waits for a receiver.
import type { Db } from '../db/database.ts';
import { expandBacklog } from '../events/event-backlog.ts';
import { type Clock, deadlineOf } from '../lib/clock.ts';
import type { IdSource } from '../lib/ids.ts';
import type { Log } from '../lib/log.ts';
import type { Loop, Loops } from '../lib/loops.ts';
import { type AccountLoad, type Claimed, type DeliveryLease, type DeliveryQueue, shareOf } from './delivery-queue.ts';
import { defaultScheduleMs, longestDelayMs } from './delivery-retry.ts';
import { crowdedAfter, type Flight, Flights, HeldLeases } from './flights.ts';
import { type Finished, finish, OutcomeWriter } from './outcome-writer.ts';
import type { Sender, Sent } from './send-delivery.ts';
import { type RequestParts, Requests } from './signed-request.ts';

interface DispatcherParts extends RequestParts {
  db: Db;
  ids: IdSource;
  queue: DeliveryQueue;
  clock: Clock;
  log: Log;
  loops: Loops;
  sender: Sender;
  /** Unique among the processes that share the database. */
  id: string;
  random: () => number;
  schedule?: readonly number[];
  leaseMs?: number;
  onAttempt(succeeded: boolean): void;
  /** Some endpoints were just disabled: what is pending for them is to be given up. */
  onDisabled(): void;
}

const claimEveryMs = 1000;
/** The most deliveries a process holds, in flight and waiting for room; each account has its share of them. */
const maxTaken = 1500;
/** What a claim may take, and at least of each account: nothing else is done until all of it is on its way. */
const claimedAtOnce = 100;
const leastAtOnce = 10;
/** Longer than a request may take, with time to write its outcome; renewed where that is not enough. */
const defaultLeaseMs = 30_000;
const stopWithinMs = 5000;

export class DeliveryDispatcher {
  readonly #parts: DispatcherParts;
  /** What is due, and leases: several processes compare these times. */
  readonly #deadlineClock: Clock;
  readonly #requests: Requests;
  readonly #writer: OutcomeWriter;
  readonly #flights = new Flights();
  readonly #leases = new HeldLeases();
  #claims = 0;
  /** The account whose backlog of events was worked on last; null: there is none. */
  #expanded: string | null = null;
  /** Where one claim cannot serve all endpoints of an account, those behind this one come first in the next. */
  readonly #last = new Map<string, string>();
  /** Endpoints that got all they could take in the last claim, and how many deliveries they had then. */
  #crowded = new Map<string, number>();
  /** How many accounts the last claim served: the next one divides itself among as many. */
  #served = 1;
  /** Accounts that had much of their share after the last claim, and how much. */
  #full = new Map<string, number>();
  #stopping = false;
  #loop: Loop | null = null;
  #idle: (() => void) | null = null;

  constructor(parts: DispatcherParts) {
    this.#parts = parts;
    this.#deadlineClock = deadlineOf(parts.clock);
    this.#requests = new Requests(parts);
    this.#writer = new OutcomeWriter({ ...parts, onWritten: (batch) => this.#written(batch) });
  }

  async start(): Promise<void> {
    const { queue, loops, schedule = defaultScheduleMs } = this.#parts;
    await queue.recover(this.#deadlineClock.now(), longestDelayMs(schedule));
    this.#loop = loops.start({ name: 'webhooks', intervalMs: claimEveryMs, step: () => this.#claimAndSend() });
  }

  wake(): void {
    this.#loop?.wake();
  }

  /** Requests in flight get a moment to finish; what has no answer by then is due again at once, for any process. */
  async stop(): Promise<void> {
    this.#stopping = true;
    await this.#loop?.stop();
    if (this.#flights.count > 0) {
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#idle = resolve;
      const timer = setTimeout(resolve, stopWithinMs);
      await promise;
      clearTimeout(timer);
    }
    const unanswered = this.#flights.giveUpAll();
    await this.#writer.stop();
    await this.#release(unanswered);
    await this.#parts.sender.close();
  }

  async #claimAndSend(): Promise<void> {
    const { queue, id, leaseMs = defaultLeaseMs } = this.#parts;
    if (this.#stopping) return;
    const nowMs = this.#deadlineClock.now();
    void this.#release(this.#flights.giveUpStale(nowMs));
    const untilMs = nowMs + leaseMs;
    await this.#renewLeases(nowMs + leaseMs / 2, untilMs);
    await this.#expandBacklog();
    const loads = this.#flights.loads();
    const accounts = this.#accountLoads();
    const atOnce = Math.max(leastAtOnce, Math.floor(claimedAtOnce / this.#served));
    const claimed = await queue.claim({
      loads,
      most: maxTaken,
      atOnce,
      accounts,
      lease: `${id}.${++this.#claims}`,
      nowMs,
      untilMs,
    });
    this.#leases.hold(claimed, untilMs);
    const takenAt = this.#deadlineClock.now();
    for (const delivery of claimed) this.#flights.add(delivery, takenAt);
    for (const webhookId of new Set(claimed.map(({ webhook_id }) => webhook_id))) this.#sendWaiting(webhookId);
    if (this.#noteTurns(claimed, accounts, atOnce)) this.wake();
    this.#crowded = crowdedAfter(loads, claimed, nowMs);
    for (const webhookId of this.#crowded.keys()) this.#wakeIfRoom(webhookId);
  }

  /** One slice of the deliveries that are still to be inserted; the next pass goes on with the next account. */
  async #expandBacklog(): Promise<void> {
    const { db, ids, clock } = this.#parts;
    this.#expanded = await expandBacklog(db, { ids, clock }, this.#expanded ?? '');
    if (this.#expanded !== null) this.wake();
  }

  /** Claims again once a quarter of what an endpoint had is done: fewer are not worth a query. */
  #wakeIfRoom(webhookId: string): void {
    const hasRoom = this.#flights.takenOf(webhookId) <= (this.#crowded.get(webhookId) ?? -1) * 0.75;
    if (hasRoom || (this.#full.size > 0 && this.#hasAccountRoom())) this.wake();
  }

  #hasAccountRoom(): boolean {
    const taken = this.#flights.takenByAccount();
    return [...this.#full].some(([account, had]) => (taken.get(account) ?? 0) <= had / 2);
  }

  #accountLoads(): Map<string, AccountLoad> {
    const loads = this.#flights.takenByAccount();
    return new Map(Array.from(loads, ([id, taken]) => [id, { taken, after: this.#last.get(id) ?? '' }]));
  }

  /**
   * An account that got its whole share, or as much as one claim takes, may have more that is due, for other endpoints:
   * these come first in its next turn. Gives whether that is to be at once.
   */
  #noteTurns(claimed: Claimed[], before: ReadonlyMap<string, AccountLoad>, atOnce: number): boolean {
    const got = Map.groupBy(claimed, ({ account_id }) => account_id);
    const taken = this.#flights.takenByAccount();
    const share = shareOf(maxTaken, new Set([...before.keys(), ...got.keys()]).size);
    this.#served = Math.max(1, got.size);
    this.#full = new Map([...taken].filter(([, count]) => count >= share / 2));
    let hasMore = false;
    for (const [account, own] of got) {
      const isCut = own.length >= atOnce;
      hasMore ||= isCut;
      if (isCut || this.#full.has(account)) this.#last.set(account, lastInTurn(own, this.#last.get(account) ?? ''));
      else this.#last.delete(account);
    }
    return hasMore;
  }

  #sendWaiting(webhookId: string): void {
    if (this.#stopping) return;
    for (;;) {
      const flight = this.#flights.begin(webhookId, this.#deadlineClock.now());
      if (!flight) return;
      void this.#send(flight);
    }
  }

  async #send(flight: Flight): Promise<void> {
    const { sender, log, clock } = this.#parts;
    const at = clock.now();
    let sent: Sent;
    try {
      const { url, headers, body } = this.#requests.of(flight.claimed, at);
      sent = await sender.send(url, headers, body);
    } catch (error) {
      log.error({ err: error, delivery_id: flight.claimed.id }, 'a delivery could not be sent');
      sent = { status: null, error: 'The service could not make the request.', answer: null, retryAfter: undefined };
    }
    // If stop() has released the delivery meanwhile, another process may hold it, and this outcome no longer counts.
    if (this.#flights.end(flight)) this.#finish(flight, sent, at);
  }

  /** `at`: the time of day at which it was sent. */
  #finish(flight: Flight, sent: Sent, at: number): void {
    const { random, schedule = defaultScheduleMs, onAttempt } = this.#parts;
    const finished = finish(flight, sent, { at, nowMs: this.#deadlineClock.now() }, random(), schedule);
    onAttempt(finished.succeeded);
    this.#writer.add(finished);
    const { webhook_id } = flight.claimed;
    // An endpoint that fails gets nothing more before its health is written.
    if (finished.succeeded) this.#sendWaiting(webhook_id);
    else void this.#release(this.#flights.giveUpWaitingOf(webhook_id));
    this.#wakeIfRoom(webhook_id);
    if (this.#flights.count === 0) this.#idle?.();
  }

  /** A process that was held up for longer than a lease would otherwise claim again what it is sending itself. */
  async #renewLeases(endingBeforeMs: number, untilMs: number): Promise<void> {
    const ending = this.#leases.endingBefore(endingBeforeMs);
    await this.#parts.queue.renew(ending, untilMs);
    this.#leases.extend(ending, untilMs);
  }

  /** If this fails, they are due again when their lease runs out. */
  async #release(leases: DeliveryLease[]): Promise<void> {
    const { queue, log } = this.#parts;
    this.#leases.drop(leases);
    await queue.release(leases).catch((error) => log.warn({ err: error }, 'deliveries were not released'));
  }

  #written(batch: Finished[]): void {
    this.#leases.drop(batch.map(({ outcome }) => outcome));
    const nowMs = this.#deadlineClock.now();
    if (batch.some(({ strict }) => strict)) this.wake();
    for (const { outcome } of batch) {
      // The loop's interval is too long for what is due sooner.
      const inMs = outcome.due_at - nowMs;
      if (outcome.state === 'pending' && inMs < claimEveryMs)
        setTimeout(() => this.wake(), Math.max(0, inMs) + 2).unref();
    }
  }
}

/** The last endpoint served by a claim that began behind `after` and wraps around at the end. */
function lastInTurn(claimed: Claimed[], after: string): string {
  const ids = claimed.map(({ webhook_id }) => webhook_id);
  const around = ids.filter((id) => id <= after);
  return (around.length > 0 ? around : ids).reduce((a, b) => (a > b ? a : b));
}
