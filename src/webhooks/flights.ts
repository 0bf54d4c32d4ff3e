// The deliveries this process has claimed, by endpoint: those in flight, and those that wait for room. And the leases
// it holds, from the claim until the outcome is written or the delivery is released.
import type { Claimed, DeliveryLease } from './delivery-queue.ts';
import { type Load, roomFor, wantFor } from './endpoint-health.ts';

/** The load, and how the endpoint was doing at the last claim. */
interface KnownLoad extends Load {
  strict: boolean;
  failures: number;
}

export interface Flight {
  claimed: Claimed;
  sentAt: number;
}

interface Endpoint {
  account: string;
  /** In the order in which they were sent. */
  flights: Set<Flight>;
  waiting: { claimed: Claimed; takenAt: number }[];
  strict: boolean;
  /** As of the last claim. */
  failures: number;
}

/** Not longer, for the URL and the state of the webhook may change while a delivery waits. */
const longestWaitMs = 500;

export class Flights {
  #count = 0;
  #waiting = 0;
  readonly #endpoints = new Map<string, Endpoint>();

  /** In flight. */
  get count(): number {
    return this.#count;
  }

  /** In flight and waiting. */
  get taken(): number {
    return this.#count + this.#waiting;
  }

  /** In flight and waiting, by account. */
  takenByAccount(): Map<string, number> {
    const taken = new Map<string, number>();
    for (const { account, flights, waiting } of this.#endpoints.values())
      taken.set(account, (taken.get(account) ?? 0) + flights.size + waiting.length);
    return taken;
  }

  takenOf(webhookId: string): number {
    const endpoint = this.#endpoints.get(webhookId);
    return endpoint ? endpoint.flights.size + endpoint.waiting.length : 0;
  }

  add(claimed: Claimed, nowMs: number): void {
    const { webhook_id, account_id: account, ordering, failures } = claimed;
    let endpoint = this.#endpoints.get(webhook_id);
    if (!endpoint) {
      endpoint = { account, flights: new Set(), waiting: [], strict: false, failures: 0 };
      this.#endpoints.set(webhook_id, endpoint);
    }
    endpoint.strict = ordering === 'strict';
    endpoint.failures = failures;
    endpoint.waiting.push({ claimed, takenAt: nowMs });
    this.#waiting++;
  }

  /** Takes the next delivery off the waiting ones, if there is room for it. */
  begin(webhookId: string, nowMs: number): Flight | undefined {
    const endpoint = this.#endpoints.get(webhookId);
    if (!endpoint || endpoint.waiting.length === 0) return undefined;
    if (isStale(endpoint, nowMs) || roomOf(endpoint, nowMs) === 0) return undefined;
    const flight = { claimed: endpoint.waiting.shift()!.claimed, sentAt: nowMs };
    endpoint.flights.add(flight);
    this.#waiting--;
    this.#count++;
    return flight;
  }

  /** Gives whether this process still held it. */
  end(flight: Flight): boolean {
    const id = flight.claimed.webhook_id;
    const endpoint = this.#endpoints.get(id);
    if (!endpoint?.flights.delete(flight)) return false;
    this.#count--;
    this.#forget(id, endpoint);
    return true;
  }

  loads(): Map<string, KnownLoad> {
    return new Map(Array.from(this.#endpoints, ([id, endpoint]) => [id, loadOf(endpoint)]));
  }

  /** Lets go of what waits for this endpoint, and gives it to the caller to release. */
  giveUpWaitingOf(webhookId: string): Claimed[] {
    const endpoint = this.#endpoints.get(webhookId);
    if (!endpoint) return [];
    const given = endpoint.waiting.splice(0).map(({ claimed }) => claimed);
    this.#waiting -= given.length;
    this.#forget(webhookId, endpoint);
    return given;
  }

  /** Lets go of what has waited for too long. */
  giveUpStale(nowMs: number): Claimed[] {
    const stale = [...this.#endpoints].filter(([, endpoint]) => isStale(endpoint, nowMs));
    return stale.flatMap(([id]) => this.giveUpWaitingOf(id));
  }

  /** Lets go of everything. */
  giveUpAll(): Claimed[] {
    const all = [...this.#endpoints.values()].flatMap(({ flights, waiting }) => [...flights, ...waiting]);
    this.#endpoints.clear();
    this.#count = 0;
    this.#waiting = 0;
    return all.map(({ claimed }) => claimed);
  }

  #forget(id: string, { flights, waiting }: Endpoint): void {
    if (flights.size === 0 && waiting.length === 0) this.#endpoints.delete(id);
  }
}

const loadOf = ({ flights, waiting, strict, failures }: Endpoint): KnownLoad => ({
  inFlight: flights.size,
  oldestAt: flights.values().next().value?.sentAt ?? null,
  waiting: waiting.length,
  strict,
  failures,
});

const roomOf = (endpoint: Endpoint, nowMs: number): number =>
  roomFor({ failures: endpoint.failures, probeAt: null }, endpoint.strict, loadOf(endpoint), nowMs);

const isStale = ({ waiting }: Endpoint, nowMs: number): boolean =>
  waiting.length > 0 && nowMs - waiting[0]!.takenAt > longestWaitMs;

/** Endpoints that got all they could take, and how many they have now: more may be due for them. */
export function crowdedAfter(
  loads: ReadonlyMap<string, KnownLoad>,
  claimed: readonly Claimed[],
  nowMs: number,
): Map<string, number> {
  const got = Map.groupBy(claimed, ({ webhook_id }) => webhook_id);
  const crowded = new Map<string, number>();
  for (const id of new Set([...loads.keys(), ...got.keys()])) {
    const load = loads.get(id);
    const of = got.get(id) ?? [];
    const failures = of[0]?.failures ?? load!.failures;
    const strict = of[0] ? of[0].ordering === 'strict' : load!.strict;
    if (of.length >= wantFor({ failures, probeAt: null }, strict, load, nowMs))
      crowded.set(id, (load?.inFlight ?? 0) + (load?.waiting ?? 0) + of.length);
  }
  return crowded;
}

interface HeldLease extends DeliveryLease {
  untilMs: number;
}

export class HeldLeases {
  /** By delivery: the lease of a later claim takes the place of one that was lost. */
  readonly #held = new Map<string, HeldLease>();

  hold(leases: readonly DeliveryLease[], untilMs: number): void {
    for (const { id, lease } of leases) this.#held.set(id, { id, lease, untilMs });
  }

  drop(leases: readonly DeliveryLease[]): void {
    for (const { id, lease } of leases) if (this.#held.get(id)?.lease === lease) this.#held.delete(id);
  }

  /** Those that are still held. */
  extend(leases: readonly DeliveryLease[], untilMs: number): void {
    for (const { id, lease } of leases) {
      const held = this.#held.get(id);
      if (held?.lease === lease) held.untilMs = untilMs;
    }
  }

  endingBefore(timeMs: number): DeliveryLease[] {
    return [...this.#held.values()].filter(({ untilMs }) => untilMs < timeMs);
  }
}
