// One read from the service, shared by every component that shows it. It is read again when it is invalidated:
// one request at a time, never faster than the rate limit allows, and not while the tab is hidden. The last data stays
// in the snapshot during later reads and while the service is away.
import { isTransient } from './errors.ts';
import { endsSession } from './session.ts';
import { minGapMs, waitUntil } from './wire.ts';

export interface Snapshot<T> {
  data: T | undefined;
  /** Set if the latest read failed. */
  error: Error | undefined;
  isReading: boolean;
}

export interface ReadOptions<T> {
  /** Invalidated by changes in this project; '*': in any project. */
  project?: string;
  /** Only by changes in this environment of the project. */
  environment?: string;
  /** At least so long between two reads, for what is costly to read. */
  minGapMs?(data: T): number;
  /** When to read again although no change was announced; null: not at all. */
  pollMs?(data: T): number | null;
}

/** A list is read up to `pageCount` pages; a single resource ignores it. */
type ReadFunction<T> = (pageCount: number) => Promise<T>;

/** The snapshot before the first read has finished. */
export const emptySnapshot: Snapshot<never> = { data: undefined, error: undefined, isReading: true };

/** Changes come in bursts; one read serves all that arrive within this time. */
const debounceMs = 30;
const minRetryMs = 1000;
const maxRetryMs = 15_000;

export class CachedRead<T> {
  snapshot: Snapshot<T> = emptySnapshot;
  options: ReadOptions<T> = {};
  #read: ReadFunction<T> | undefined;
  #pageCount = 1;
  readonly #listeners = new Set<() => void>();
  #isRunning = false;
  #isInvalidated = false;
  #startedAt = 0;
  #retryMs = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #dueAt = Number.POSITIVE_INFINITY;

  get isShown(): boolean {
    return this.#listeners.size > 0;
  }

  /** Requests that start from now on use these. */
  configure(read: ReadFunction<T>, options: ReadOptions<T>): void {
    this.#read = read;
    this.options = options;
  }

  subscribe(listener: () => void): () => void {
    this.#listeners.add(listener);
    if (this.#listeners.size === 1) this.invalidate(0);
    return () => {
      this.#listeners.delete(listener);
      if (!this.isShown) this.#cancel();
    };
  }

  invalidate(delayMs = debounceMs): void {
    // A hidden tab reads when it is shown again.
    if (!this.isShown || (document.hidden && this.snapshot.data !== undefined)) return;
    if (this.#isRunning) {
      this.#isInvalidated = true;
      return;
    }
    const now = Date.now();
    const ownGapMs = this.snapshot.data === undefined ? 0 : (this.options.minGapMs?.(this.snapshot.data) ?? 0);
    const dueAt = Math.max(now + delayMs, this.#startedAt + Math.max(minGapMs(), ownGapMs), waitUntil.get());
    if (dueAt >= this.#dueAt) return;
    this.#cancel();
    this.#dueAt = dueAt;
    this.#timer = setTimeout(() => this.#run(), dueAt - now);
  }

  readNextPage(): void {
    this.#pageCount++;
    this.#startedAt = 0;
    this.invalidate(0);
  }

  #cancel(): void {
    clearTimeout(this.#timer);
    this.#dueAt = Number.POSITIVE_INFINITY;
  }

  async #run(): Promise<void> {
    this.#cancel();
    this.#isRunning = true;
    this.#isInvalidated = false;
    this.#startedAt = Date.now();
    this.#publish({ isReading: true });
    try {
      const data = await this.#read!(this.#pageCount);
      this.#retryMs = 0;
      this.#publish({ data, error: undefined, isReading: false });
    } catch (error) {
      if (!endsSession(error)) this.#publish({ error: error as Error, isReading: false });
    }
    this.#isRunning = false;
    this.#scheduleNext();
  }

  #scheduleNext(): void {
    const { data, error } = this.snapshot;
    if (error !== undefined && isTransient(error)) {
      this.#retryMs = Math.min(maxRetryMs, Math.max(minRetryMs, this.#retryMs * 2));
      this.invalidate(this.#retryMs);
    } else if (this.#isInvalidated) {
      this.invalidate();
    } else if (data !== undefined) {
      const pollMs = this.options.pollMs?.(data) ?? null;
      if (pollMs !== null) this.invalidate(pollMs);
    }
  }

  #publish(change: Partial<Snapshot<T>>): void {
    this.snapshot = { ...this.snapshot, ...change };
    for (const listener of [...this.#listeners]) listener();
  }
}
