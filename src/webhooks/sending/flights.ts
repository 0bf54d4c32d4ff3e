// What this process has taken, by endpoint: what is under way, and what waits for room.
import { type Load, roomFor, wantFor } from '../endpoints/health.ts';
import type { Claimed } from '../queue/claim.ts';

/** With how the endpoint was doing when the last of them was taken. */
export interface KnownLoad extends Load {
  strict: boolean;
  failures: number;
}

export interface Flight {
  claimed: Claimed;
  sentAt: number;
}

interface Endpoint {
  /** In the order of sending. */
  flights: Set<Flight>;
  waiting: { claimed: Claimed; takenAt: number }[];
  strict: boolean;
  /** As it was when the last of them was taken. */
  failures: number;
}

/** Where a delivery goes, and whether it still should, may change while it waits. */
const longestWaitMs = 500;

export class Flights {
  #count = 0;
  #waiting = 0;
  readonly #endpoints = new Map<string, Endpoint>();

  /** Under way. */
  get count(): number {
    return this.#count;
  }

  /** Under way and waiting. */
  get taken(): number {
    return this.#count + this.#waiting;
  }

  takenOf(webhookId: string): number {
    const endpoint = this.#endpoints.get(webhookId);
    return endpoint ? endpoint.flights.size + endpoint.waiting.length : 0;
  }

  add(claimed: Claimed, nowMs: number): void {
    const { webhook_id, ordering, failures } = claimed;
    let endpoint = this.#endpoints.get(webhook_id);
    if (!endpoint) {
      endpoint = { flights: new Set(), waiting: [], strict: false, failures: 0 };
      this.#endpoints.set(webhook_id, endpoint);
    }
    endpoint.strict = ordering === 'strict';
    endpoint.failures = failures;
    endpoint.waiting.push({ claimed, takenAt: nowMs });
    this.#waiting++;
  }

  /** The next one there is room for is under way from now on. */
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

  /** Gives whether it was still ours. */
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

  /** What waits for this endpoint is no longer ours. */
  giveUpWaitingOf(webhookId: string): Claimed[] {
    const endpoint = this.#endpoints.get(webhookId);
    if (!endpoint) return [];
    const given = endpoint.waiting.splice(0).map(({ claimed }) => claimed);
    this.#waiting -= given.length;
    this.#forget(webhookId, endpoint);
    return given;
  }

  /** What has waited for too long is no longer ours. */
  giveUpStale(nowMs: number): Claimed[] {
    const stale = [...this.#endpoints].filter(([, endpoint]) => isStale(endpoint, nowMs));
    return stale.flatMap(([id]) => this.giveUpWaitingOf(id));
  }

  /** Nothing is ours any more. */
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

/** Endpoints that got all they could take, and how many they have now: there may be more for them. */
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
