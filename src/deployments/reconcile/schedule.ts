// Which environments to look at, and when. Holds one entry per environment that has something to reconcile. An environment
// has one look at a time; one that is enqueued during a look is looked at again after it.
//
// There may be a hundred thousand, and some are due all the time, so what is due is found without looking at the others.
import { type EnvironmentKey, keyText } from '../../environments/environment-key.ts';
import { Heap } from '../../lib/heap.ts';

interface Entry {
  key: EnvironmentKey;
  at: number;
  /** A look is under way or waits for its turn; it plans the next one. */
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

  /** Look at this environment at once. */
  enqueue(key: EnvironmentKey, nowMs: number): void {
    this.#moveUp(key, nowMs);
  }

  /** Look at once at those of the environments that are scheduled. */
  hasten(keys: EnvironmentKey[], nowMs: number): void {
    for (const key of keys) if (this.#entries.has(keyText(key))) this.#moveUp(key, nowMs);
  }

  /** Adds the environments that are not scheduled yet. */
  discover(keys: EnvironmentKey[], nowMs: number): void {
    for (const key of keys) if (!this.#entries.has(keyText(key))) this.#moveUp(key, nowMs);
  }

  /**
   * These are all that have something to reconcile: looks at once at those that are scheduled besides. A look that is under
   * way finds out by itself; were it followed by another, each would ask for the next sweep, and that for the next look.
   */
  reduceTo(keys: EnvironmentKey[], nowMs: number): void {
    const kept = new Set(keys.map(keyText));
    for (const [name, entry] of this.#entries) {
      if (!kept.has(name) && !entry.isTaken && entry.at > nowMs) this.#planAt(entry, nowMs);
    }
  }

  /** Takes the environments to look at now, the longest due first. Each has to be planned again or removed. */
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

  /** The look has ended: look again then, or earlier if the environment was enqueued in the meantime. */
  plan(key: EnvironmentKey, at: number): void {
    this.#moveUp(key, at);
    const entry = this.#entries.get(keyText(key))!;
    if (!entry.isTaken) return;
    entry.isTaken = false;
    this.#planAt(entry, entry.at);
  }

  /** The look has ended: there is nothing to reconcile. The environment stays if it was enqueued in the meantime. */
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
    // That of a look under way is added when the look has ended.
    if (!entry.isTaken) this.#planned.add({ entry, at, order: this.#order++ });
  }

  #counts({ entry, at }: Planned): boolean {
    return entry.at === at && !entry.isTaken;
  }
}

// A queue of looks per region, each with workers of its own: a region whose engine takes its time delays no other.

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
