// Counts requests for the measurements. A request is counted when the head of its response arrives, with the time since
// its own head was complete: how slowly a client takes the body says nothing about the revision, and a stream that
// lasts for hours is counted at once. A response that breaks off later adds an error to the bucket of that moment. A
// visitor that goes away before the head is counted with the time it waited, not as an error: a revision that never
// responds shows in its latency.
import type { Clock } from '../../lib/clock.ts';
import { bucketMs, bucketOf, latencyBoundsMs, type Measurement } from './measurements.ts';

/** Taken buckets are kept this long, because a late count must give their absolute numbers again. */
const keepMs = 60_000;

const indexByMs: Uint8Array = Uint8Array.from({ length: 1001 }, (_, ms) => slowIndexOf(ms));

function slowIndexOf(ms: number): number {
  const index = latencyBoundsMs.findIndex((bound) => ms <= bound);
  return index === -1 ? latencyBoundsMs.length : index;
}

/** Which latency bucket a duration in milliseconds falls into. */
export const latencyIndexOf = (ms: number): number =>
  ms <= 1000 ? indexByMs[Math.max(0, Math.ceil(ms))]! : slowIndexOf(ms);

interface Bucket extends Measurement {
  taken: boolean;
}

/** Counts the requests of one revision. */
export class RevisionCounter {
  readonly #of: Pick<Measurement, 'project' | 'environment' | 'revision'>;
  readonly #buckets: Bucket[] = [];
  #current: Bucket | null = null;

  constructor(project: string, environment: string, revision: number) {
    this.#of = { project, environment, revision };
  }

  #at(nowMs: number): Bucket {
    const current = this.#current;
    if (current !== null && nowMs >= current.at && nowMs < current.at + bucketMs) {
      current.taken = false;
      return current;
    }
    const at = bucketOf(nowMs);
    let bucket = this.#buckets.find((one) => one.at === at);
    if (!bucket) {
      const latency = new Array<number>(latencyBoundsMs.length + 1).fill(0);
      bucket = { ...this.#of, at, requests: 0, errors: 0, latency, taken: false };
      this.#buckets.push(bucket);
    }
    bucket.taken = false;
    this.#current = bucket;
    return bucket;
  }

  countRequest(nowMs: number, tookMs: number, failed: boolean): void {
    const bucket = this.#at(nowMs);
    bucket.requests++;
    if (failed) bucket.errors++;
    bucket.latency[latencyIndexOf(tookMs)]!++;
  }

  countBrokenOff(nowMs: number): void {
    this.#at(nowMs).errors++;
  }

  /** Adds the buckets that changed to the list; true where no bucket is left. */
  take(into: Measurement[], nowMs: number): boolean {
    for (const bucket of this.#buckets) {
      if (bucket.taken) continue;
      bucket.taken = true;
      const { taken: _, ...measurement } = bucket;
      into.push({ ...measurement, latency: [...bucket.latency] });
    }
    const old = nowMs - bucketMs - keepMs;
    while (this.#buckets.length > 0 && this.#buckets[0]!.at < old) this.#buckets.shift();
    if (this.#current && this.#current.at < old) this.#current = null;
    return this.#buckets.length === 0;
  }
}

/** Counts the requests of every revision that is, or was recently, in the routing table. */
export class TrafficCounter {
  readonly #clock: Clock;
  readonly #revisions = new Map<string, RevisionCounter>();
  /** Revisions of the current table. */
  #current = new Set<string>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** To be called before `of` is called for each revision of a new table; others are dropped once they are empty. */
  beginTable(): void {
    this.#current = new Set();
  }

  of(project: string, environment: string, revision: number): RevisionCounter {
    const key = `${project}/${environment}/${revision}`;
    this.#current.add(key);
    let counter = this.#revisions.get(key);
    if (!counter) {
      counter = new RevisionCounter(project, environment, revision);
      this.#revisions.set(key, counter);
    }
    return counter;
  }

  take(): Measurement[] {
    const nowMs = this.#clock.now();
    const taken: Measurement[] = [];
    for (const [key, counter] of this.#revisions) {
      if (counter.take(taken, nowMs) && !this.#current.has(key)) this.#revisions.delete(key);
    }
    return taken;
  }
}
