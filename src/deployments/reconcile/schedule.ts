// Which environments to look at, and when. Holds one entry per environment that has something to reconcile. An environment
// that is enqueued during a look is looked at again.
import { type EnvironmentKey, keyText } from '../../environments/key.ts';

interface Entry {
  key: EnvironmentKey;
  at: number;
}

/** A look is under way, which plans the next one. */
const takenAt = Number.POSITIVE_INFINITY;

export class Schedule {
  readonly #entries = new Map<string, Entry>();
  #sweepAt = 0;
  #searchAt = 0;

  /** Look at this environment at once. */
  enqueue(key: EnvironmentKey, nowMs: number): void {
    this.#moveUp(key, nowMs);
  }

  /** Adds the environments that are not scheduled yet. */
  discover(keys: EnvironmentKey[], nowMs: number): void {
    for (const key of keys) if (!this.#entries.has(keyText(key))) this.#entries.set(keyText(key), { key, at: nowMs });
  }

  /** Takes the environments to look at now, the longest due first. Each has to be planned again or removed. */
  take(nowMs: number, limit: number): EnvironmentKey[] {
    const due = this.#due(nowMs)
      .sort((a, b) => a.at - b.at)
      .slice(0, limit);
    for (const entry of due) entry.at = takenAt;
    return due.map(({ key }) => key);
  }

  isAnyDue(nowMs: number): boolean {
    return this.#due(nowMs).length > 0;
  }

  /** Look again then, or earlier if the environment was enqueued in the meantime. */
  plan(key: EnvironmentKey, at: number): void {
    this.#moveUp(key, at);
  }

  /** The environment has nothing to reconcile. It stays if it was enqueued in the meantime. */
  remove(key: EnvironmentKey): void {
    const name = keyText(key);
    if (this.#entries.get(name)?.at === takenAt) this.#entries.delete(name);
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
    return [...this.#entries.values()].filter(({ at }) => at <= nowMs);
  }

  #moveUp(key: EnvironmentKey, at: number): void {
    const name = keyText(key);
    this.#entries.set(name, { key, at: Math.min(at, this.#entries.get(name)?.at ?? takenAt) });
  }
}
