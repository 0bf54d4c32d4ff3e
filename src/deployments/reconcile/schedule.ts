// Which environments to reconcile, and when; and the workers that do it.
//
// The schedule has one entry per environment that has something to reconcile. An environment has one pass at a time;
// one that is enqueued during a pass gets another after it. There may be a hundred thousand entries, and some are
// always due, so the due ones are found without visiting the others.
//
// The passes of each region wait in a queue of their own, with workers of their own: a region whose engine is slow
// delays no other.
import { type EnvironmentKey, keyText } from '../../environments/environment-key.ts';
import { Heap } from '../../lib/heap.ts';

interface Entry {
  key: EnvironmentKey;
  at: number;
  /** A pass is under way or waits for a worker; it plans the next one. */
  isTaken: boolean;
}

/** The time of an entry as it once was. It counts as long as that is still its time. */
interface Planned {
  entry: Entry;
  at: number;
  /** Of two with the same time, the one that was planned first. */
  order: number;
}

const never = Number.POSITIVE_INFINITY;

export class Schedule {
  readonly #entries = new Map<string, Entry>();
  readonly #planned = new Heap<Planned>((a, b) => a.at < b.at || (a.at === b.at && a.order < b.order));
  #order = 0;
  #sweepAt = 0;
  #searchAt = 0;

  /** Reconcile this environment at once. */
  enqueue(key: EnvironmentKey, nowMs: number): void {
    this.#moveUp(key, nowMs);
  }

  /** Reconcile at once those of the environments that are scheduled. */
  enqueueScheduled(keys: EnvironmentKey[], nowMs: number): void {
    for (const key of keys) if (this.#entries.has(keyText(key))) this.#moveUp(key, nowMs);
  }

  /** Adds the environments that are not scheduled yet. */
  discover(keys: EnvironmentKey[], nowMs: number): void {
    for (const key of keys) if (!this.#entries.has(keyText(key))) this.#moveUp(key, nowMs);
  }

  /**
   * Only these have something to reconcile: any other that is scheduled gets a pass at once, which removes it. One
   * whose pass is under way is left alone; otherwise each pass would ask for a sweep, and each sweep for a pass.
   */
  reduceTo(keys: EnvironmentKey[], nowMs: number): void {
    const kept = new Set(keys.map(keyText));
    for (const [name, entry] of this.#entries) {
      if (!kept.has(name) && !entry.isTaken && entry.at > nowMs) this.#planAt(entry, nowMs);
    }
  }

  /** Takes the environments that are due, the longest due first. Each has to be planned again or removed. */
  take(nowMs: number, limit: number): EnvironmentKey[] {
    const taken: EnvironmentKey[] = [];
    while (taken.length < limit && this.isAnyDue(nowMs)) {
      const { entry } = this.#planned.takeFirst()!;
      Object.assign(entry, { at: never, isTaken: true });
      taken.push(entry.key);
    }
    return taken;
  }

  isDue(key: EnvironmentKey, nowMs: number): boolean {
    return (this.#entries.get(keyText(key))?.at ?? never) <= nowMs;
  }

  isAnyDue(nowMs: number): boolean {
    while (this.#planned.first && !this.#counts(this.#planned.first)) this.#planned.takeFirst();
    return (this.#planned.first?.at ?? never) <= nowMs;
  }

  /** The pass has ended: the next one is due then, or earlier if the environment was enqueued in the meantime. */
  plan(key: EnvironmentKey, at: number): void {
    this.#moveUp(key, at);
    const entry = this.#entries.get(keyText(key))!;
    if (!entry.isTaken) return;
    entry.isTaken = false;
    this.#planAt(entry, entry.at);
  }

  /**
   * The pass has ended: there is nothing left to reconcile. The environment stays if it was enqueued in the meantime.
   */
  remove(key: EnvironmentKey): void {
    const name = keyText(key);
    const entry = this.#entries.get(name);
    if (!entry) return;
    entry.isTaken = false;
    if (entry.at === never) this.#entries.delete(name);
    else this.#planAt(entry, entry.at);
  }

  /** Search for orphans then, or at once. */
  enqueueSweep(at = 0): void {
    this.#sweepAt = Math.min(this.#sweepAt, at);
  }

  /** Whether a sweep is due; if so, the next one is due after the interval. */
  takeSweep(nowMs: number, intervalMs: number): boolean {
    if (nowMs < this.#sweepAt) return false;
    this.#sweepAt = nowMs + intervalMs;
    return true;
  }

  /** Whether a search for new deployments is due; if so, the next one is due after the interval. */
  takeSearch(nowMs: number, intervalMs: number): boolean {
    if (nowMs < this.#searchAt) return false;
    this.#searchAt = nowMs + intervalMs;
    return true;
  }

  get size(): number {
    return this.#entries.size;
  }

  #moveUp(key: EnvironmentKey, at: number): void {
    const name = keyText(key);
    const entry = this.#entries.get(name) ?? { key, at: never, isTaken: false };
    this.#entries.set(name, entry);
    if (at < entry.at) this.#planAt(entry, at);
  }

  #planAt(entry: Entry, at: number): void {
    entry.at = at;
    // That of an environment with a pass under way is added when the pass has ended.
    if (!entry.isTaken) this.#planned.add({ entry, at, order: this.#order++ });
  }

  #counts({ entry, at }: Planned): boolean {
    return entry.at === at && !entry.isTaken;
  }
}

const workersPerRegion = 16;

type Work = () => Promise<void>;

export class RegionQueues {
  readonly #waiting = new Map<string, Work[]>();
  readonly #running = new Map<string, Set<Promise<void>>>();

  /** Runs it once a worker of the region is free. `work` may not fail. */
  add(region: string, work: Work): void {
    const waiting = this.#waiting.get(region) ?? [];
    this.#waiting.set(region, waiting);
    waiting.push(work);
    this.#next(region);
  }

  /** Drops what waits, and waits for what runs. */
  async stop(): Promise<void> {
    this.#waiting.clear();
    await Promise.all([...this.#running.values()].flatMap((running) => [...running]));
  }

  #next(region: string): void {
    const running = this.#running.get(region) ?? new Set();
    this.#running.set(region, running);
    if (running.size >= workersPerRegion) return;
    const work = this.#waiting.get(region)?.shift();
    if (!work) return;
    const done = work().finally(() => {
      running.delete(done);
      this.#next(region);
    });
    running.add(done);
  }
}
