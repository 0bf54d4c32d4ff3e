// What the data plane measures: requests, errors and latency per revision, in buckets of ten seconds. Each router keeps
// and stores its own counts as absolute numbers, so storing them twice is harmless and the sum over all routers is
// right.
//
// A request is counted when the head of its response arrives, with the time since its own head was complete: how slowly
// a client takes the body says nothing about the revision, and a stream that lasts for hours is counted at once. A
// response that breaks off later adds an error to the bucket of that moment. A visitor that goes away before the head is
// counted with the time it waited, not as an error: a revision that never responds shows in its latency.
//
// A bucket that changed waits in a queue until it was taken and stored; one that was not stored is queued again. So
// nothing is lost while the database is away, as long as the queue has room.
import type { Clock } from '../lib/clock.ts';
import { emptyLatency, histogramOf, latencyIndexOf } from './latency.ts';
import {
  abandonedAfterMs,
  addFailure,
  addToDetail,
  type Detail,
  encodeDetail,
  noDetail,
  type Outcome,
  type Unit,
} from './request-detail.ts';

export const bucketMs = 10_000;

export interface Measurement {
  project: string;
  environment: string;
  revision: number;
  /** Start of the bucket, milliseconds since the epoch. */
  at: number;
  requests: number;
  /** Responses with a status of 500 or above, and requests that got no response or an incomplete one. */
  errors: number;
  /** Responses with a status from 400 to 499; a router of an earlier version does not count them. */
  clientErrors?: number;
  /** Requests per latency bucket; one entry more than there are bounds. */
  latency: number[];
  /** While a canary runs: a `Detail`, encoded. */
  detail?: string | null;
}

export function outcomeOf(status: number): Outcome {
  if (status >= 500) return 'error';
  return status >= 400 ? 'client_error' : 'ok';
}

export const bucketOf = (nowMs: number): number => Math.floor(nowMs / bucketMs) * bucketMs;

/** Stored buckets are kept this long, because a late count must give their absolute numbers again. */
const keepMs = 60_000;
/** The oldest beyond this are dropped: about 20 MB. */
const maxWaiting = 50_000;
/** Turning more into a message would hold up requests. */
const maxBatch = 500;

interface Bucket extends Required<Omit<Measurement, 'detail'>> {
  detail: Detail | null;
  /** It changed since it was last taken. */
  waiting: boolean;
  /** It was taken, and may come back. */
  inFlight: boolean;
}

const measurementOf = ({ waiting: _, inFlight: __, detail, ...measured }: Bucket): Measurement => ({
  ...measured,
  latency: [...measured.latency],
  ...(detail && { detail: encodeDetail(detail) }),
});

export interface OpenRequest {
  startedAt: number;
}

/** Counts the requests of one revision. */
export class RevisionCounter {
  readonly #of: Pick<Measurement, 'project' | 'environment' | 'revision'>;
  readonly #onChange: (bucket: Bucket) => void;
  readonly #buckets: Bucket[] = [];
  #current: Bucket | null = null;
  /** Requests without an answer yet, of those that are counted in detail: when they began. */
  readonly #open = new Set<OpenRequest>();
  /** Some were reported as waiting for long. */
  #hasWaiting = false;
  /** No route uses it any more: it goes once its last bucket does. */
  retired = false;

  constructor(project: string, environment: string, revision: number, onChange: (bucket: Bucket) => void = () => {}) {
    this.#of = { project, environment, revision };
    this.#onChange = onChange;
  }

  isOf(project: string, environment: string, revision: number): boolean {
    const of = this.#of;
    return of.revision === revision && of.project === project && of.environment === environment;
  }

  #at(nowMs: number): Bucket {
    let bucket = this.#current;
    if (bucket === null || nowMs < bucket.at || nowMs >= bucket.at + bucketMs) {
      const at = bucketOf(nowMs);
      bucket = this.#buckets.find((one) => one.at === at) ?? this.#begin(at);
      this.#current = bucket;
    }
    if (!bucket.waiting) {
      bucket.waiting = true;
      this.#onChange(bucket);
    }
    return bucket;
  }

  #begin(at: number): Bucket {
    const latency = emptyLatency();
    const bucket = {
      ...this.#of,
      at,
      requests: 0,
      errors: 0,
      clientErrors: 0,
      latency,
      detail: null,
      waiting: false,
      inFlight: false,
    };
    this.#buckets.push(bucket);
    return bucket;
  }

  countRequest(nowMs: number, tookMs: number, outcome: Outcome, unit: Unit | null = null): void {
    const bucket = this.#at(nowMs);
    const latency = latencyIndexOf(tookMs);
    bucket.requests++;
    if (outcome === 'error') bucket.errors++;
    else if (outcome === 'client_error') bucket.clientErrors++;
    bucket.latency[latency]!++;
    if (unit === null) return;
    bucket.detail ??= noDetail();
    addToDetail(bucket.detail, unit, outcome, latency);
  }

  /** The response to a request that was counted already breaks off. */
  countBrokenOff(nowMs: number, unit: Unit | null = null): void {
    const bucket = this.#at(nowMs);
    bucket.errors++;
    if (unit === null) return;
    bucket.detail ??= noDetail();
    addFailure(bucket.detail, unit);
  }

  /** A request waits for its answer until `close`. */
  open(startedAt: number): OpenRequest {
    const request = { startedAt };
    this.#open.add(request);
    return request;
  }

  close(request: OpenRequest): void {
    this.#open.delete(request);
  }

  /** Reports the requests that have been waiting for long, and once that there are none any more. */
  noteWaiting(nowMs: number, monotonicMs: number): void {
    if (this.#open.size === 0 && !this.#hasWaiting) return;
    this.setWaiting(
      nowMs,
      [...this.#open].map(({ startedAt }) => monotonicMs - startedAt),
    );
  }

  /** For how long each request has been waiting. */
  setWaiting(nowMs: number, agesMs: readonly number[]): void {
    const long = agesMs.filter((age) => age >= abandonedAfterMs);
    if (long.length === 0 && !this.#hasWaiting) return;
    this.#hasWaiting = long.length > 0;
    const waiting = histogramOf(long);
    // A reader that takes changes until there are none would never end otherwise.
    const known = this.#current?.at === bucketOf(nowMs) ? this.#current.detail?.waiting : undefined;
    if (known?.length === waiting.length && waiting.every((count, i) => count === known[i])) return;
    const bucket = this.#at(nowMs);
    bucket.detail ??= noDetail();
    bucket.detail.waiting = waiting;
  }

  /** Drops stored buckets from before this time; true where no bucket is left. */
  forgetBefore(ms: number): boolean {
    const buckets = this.#buckets;
    if (buckets.length === 0) return true;
    for (let i = buckets.length - 1; i >= 0; i--) {
      const bucket = buckets[i]!;
      if (bucket.at >= ms || bucket.waiting || bucket.inFlight) continue;
      buckets.splice(i, 1);
      if (this.#current === bucket) this.#current = null;
    }
    return buckets.length === 0;
  }
}

interface TakenBuckets {
  measurements: Measurement[];
  settle(stored: boolean): void;
}

/** Counts the requests of every revision that is, or was recently, in the routing table. */
export class TrafficCounter {
  readonly #clock: Clock;
  readonly #monotonic: Clock | null;
  readonly #revisions = new Map<string, RevisionCounter>();
  /** Requests of a busy revision follow each other. */
  #last: RevisionCounter | null = null;
  #waiting: Bucket[] = [];
  #dropped = 0;

  /** `monotonic`: by which requests that wait for their answer are timed; null: nobody opens any. */
  constructor(clock: Clock, monotonic: Clock | null = null) {
    this.#clock = clock;
    this.#monotonic = monotonic;
  }

  of(project: string, environment: string, revision: number): RevisionCounter {
    const last = this.#last;
    if (last?.isOf(project, environment, revision)) {
      last.retired = false;
      return last;
    }
    const key = `${project}/${environment}/${revision}`;
    let counter = this.#revisions.get(key);
    if (!counter) {
      counter = new RevisionCounter(project, environment, revision, (bucket) => this.#waiting.push(bucket));
      this.#revisions.set(key, counter);
    }
    counter.retired = false;
    this.#last = counter;
    return counter;
  }

  /** The buckets that have waited longest; null: none waits. */
  take(): TakenBuckets | null {
    this.#forget();
    if (this.#monotonic) {
      for (const counter of this.#revisions.values()) counter.noteWaiting(this.#clock.now(), this.#monotonic.now());
    }
    const taken = this.#waiting.splice(0, maxBatch);
    if (taken.length === 0) return null;
    for (const bucket of taken) Object.assign(bucket, { waiting: false, inFlight: true });
    return { measurements: taken.map(measurementOf), settle: (stored) => this.#settle(taken, stored) };
  }

  /** How many buckets were dropped since this was last called, because too many waited. */
  takeDropped(): number {
    const dropped = this.#dropped;
    this.#dropped = 0;
    return dropped;
  }

  #settle(taken: Bucket[], stored: boolean): void {
    const again = stored ? [] : taken.filter((bucket) => !bucket.waiting);
    for (const bucket of taken) bucket.inFlight = false;
    for (const bucket of again) bucket.waiting = true;
    if (again.length > 0) this.#waiting = [...again, ...this.#waiting];
  }

  #forget(): void {
    const excess = this.#waiting.length - maxWaiting;
    if (excess > 0) {
      for (const bucket of this.#waiting.splice(0, excess)) bucket.waiting = false;
      this.#dropped += excess;
    }
    const before = this.#clock.now() - bucketMs - keepMs;
    for (const [key, counter] of this.#revisions) {
      if (!counter.forgetBefore(before) || !counter.retired) continue;
      this.#revisions.delete(key);
      if (this.#last === counter) this.#last = null;
    }
  }
}
