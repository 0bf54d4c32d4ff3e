// Which environments to look at, and when. Holds one entry per environment that has something to reconcile. An environment
// has one look at a time; one that is enqueued during a look is looked at again after it.
import { type EnvironmentKey, keyText } from '../../environments/key.ts';

interface Entry {
  key: EnvironmentKey;
  at: number;
  /** A look is under way or waits for its turn; it plans the next one. */
  isTaken: boolean;
}

const never = Number.POSITIVE_INFINITY;

export class Schedule {
  readonly #entries = new Map<string, Entry>();
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
      if (!kept.has(name) && !entry.isTaken) entry.at = Math.min(entry.at, nowMs);
    }
  }

  /** Takes the environments to look at now, the longest due first. Each has to be planned again or removed. */
  take(nowMs: number, limit: number): EnvironmentKey[] {
    const due = this.#due(nowMs)
      .sort((a, b) => a.at - b.at)
      .slice(0, limit);
    for (const entry of due) Object.assign(entry, { at: never, isTaken: true });
    return due.map(({ key }) => key);
  }

  isDue(key: EnvironmentKey, nowMs: number): boolean {
    return (this.#entries.get(keyText(key))?.at ?? never) <= nowMs;
  }

  isAnyDue(nowMs: number): boolean {
    return this.#due(nowMs).length > 0;
  }

  /** The look has ended: look again then, or earlier if the environment was enqueued in the meantime. */
  plan(key: EnvironmentKey, at: number): void {
    this.#moveUp(key, at);
    this.#entries.get(keyText(key))!.isTaken = false;
  }

  /** The look has ended: there is nothing to reconcile. The environment stays if it was enqueued in the meantime. */
  remove(key: EnvironmentKey): void {
    const name = keyText(key);
    const entry = this.#entries.get(name);
    if (!entry) return;
    entry.isTaken = false;
    if (entry.at === never) this.#entries.delete(name);
  }

  /** Search for orphans at once. */
  enqueueSweep(): void {
    this.#sweepAt = 0;
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

  #due(nowMs: number): Entry[] {
    return [...this.#entries.values()].filter(({ at, isTaken }) => at <= nowMs && !isTaken);
  }

  #moveUp(key: EnvironmentKey, at: number): void {
    const entry = this.#entries.get(keyText(key));
    if (entry) entry.at = Math.min(at, entry.at);
    else this.#entries.set(keyText(key), { key, at, isTaken: false });
  }
}
