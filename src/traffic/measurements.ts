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

export const bucketMs = 10_000;

/** Upper bounds of the latency histogram in milliseconds; one more bucket holds everything slower. */
export const latencyBoundsMs = [
  1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 70, 100, 150, 200, 300, 500, 700, 1000, 1500, 2000, 3000, 5000, 10_000, 30_000,
] as const;

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
}

/** How a request ended, as far as it counts. */
export type Outcome = 'ok' | 'client_error' | 'error';

export function outcomeOf(status: number): Outcome {
  if (status >= 500) return 'error';
  return status >= 400 ? 'client_error' : 'ok';
}

export const bucketOf = (nowMs: number): number => Math.floor(nowMs / bucketMs) * bucketMs;

/** The latency that this share of requests did not exceed, interpolated within its bucket; null without requests. */
export function quantileMs(latency: readonly number[], share: number): number | null {
  const total = latency.reduce((sum, count) => sum + count, 0);
  if (total === 0) return null;
  const rank = share * total;
  let seen = 0;
  for (const [index, count] of latency.entries()) {
    if (count > 0 && seen + count >= rank) {
      const low = index === 0 ? 0 : latencyBoundsMs[index - 1]!;
      const high = latencyBoundsMs[index] ?? low;
      return Math.round((low + ((high - low) * (rank - seen)) / count) * 100) / 100;
    }
    seen += count;
  }
  return latencyBoundsMs.at(-1)!;
}

/** Stored buckets are kept this long, because a late count must give their absolute numbers again. */
const keepMs = 60_000;
/** The oldest beyond this are dropped: about 20 MB. */
const maxWaiting = 50_000;
/** Turning more into a message would hold up requests. */
const maxBatch = 500;

const indexByMs: Uint8Array = Uint8Array.from({ length: 1001 }, (_, ms) => slowIndexOf(ms));

function slowIndexOf(ms: number): number {
  const index = latencyBoundsMs.findIndex((bound) => ms <= bound);
  return index === -1 ? latencyBoundsMs.length : index;
}

/** Which latency bucket a duration in milliseconds falls into. */
export const latencyIndexOf = (ms: number): number =>
  ms <= 1000 ? indexByMs[Math.max(0, Math.ceil(ms))]! : slowIndexOf(ms);

interface Bucket extends Required<Measurement> {
  /** It changed since it was last taken. */
  waiting: boolean;
  /** It was taken, and may come back. */
  inFlight: boolean;
}

const measurementOf = ({ waiting: _, inFlight: __, ...measured }: Bucket): Measurement => ({
  ...measured,
  latency: [...measured.latency],
});

/** Counts the requests of one revision. */
export class RevisionCounter {
  readonly #of: Pick<Measurement, 'project' | 'environment' | 'revision'>;
  readonly #onChange: (bucket: Bucket) => void;
  readonly #buckets: Bucket[] = [];
  #current: Bucket | null = null;
  /** No route uses it any more: it goes once its last bucket does. */
  retired = false;

  constructor(project: string, environment: string, revision: number, onChange: (bucket: Bucket) => void = () => {}) {
    this.#of = { project, environment, revision };
    this.#onChange = onChange;
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
    const latency = new Array<number>(latencyBoundsMs.length + 1).fill(0);
    const bucket = {
      ...this.#of,
      at,
      requests: 0,
      errors: 0,
      clientErrors: 0,
      latency,
      waiting: false,
      inFlight: false,
    };
    this.#buckets.push(bucket);
    return bucket;
  }

  countRequest(nowMs: number, tookMs: number, outcome: Outcome): void {
    const bucket = this.#at(nowMs);
    bucket.requests++;
    if (outcome === 'error') bucket.errors++;
    else if (outcome === 'client_error') bucket.clientErrors++;
    bucket.latency[latencyIndexOf(tookMs)]!++;
  }

  countBrokenOff(nowMs: number): void {
    this.#at(nowMs).errors++;
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
  readonly #revisions = new Map<string, RevisionCounter>();
  #waiting: Bucket[] = [];
  #dropped = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  of(project: string, environment: string, revision: number): RevisionCounter {
    const key = `${project}/${environment}/${revision}`;
    let counter = this.#revisions.get(key);
    if (!counter) {
      counter = new RevisionCounter(project, environment, revision, (bucket) => this.#waiting.push(bucket));
      this.#revisions.set(key, counter);
    }
    counter.retired = false;
    return counter;
  }

  /** The buckets that have waited longest; null: none waits. */
  take(): TakenBuckets | null {
    this.#forget();
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
      if (counter.forgetBefore(before) && counter.retired) this.#revisions.delete(key);
    }
  }
}
