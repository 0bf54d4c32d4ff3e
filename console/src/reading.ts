// What is on the screen is a set of readings. Each knows how to read itself, what it is about, and when it may be read
// again: at most one request at a time, soon after something it is about has changed, and never faster than the rate
// limit allows. What was read stays on the screen while it is read again, and while the service is away.
import { SluiceError } from '../../src/client/index.ts';
import { endsSession } from './session.ts';
import { gapMs, waitUntil } from './wire.ts';

export interface Snapshot<T> {
  data: T | undefined;
  /** Of the latest read, if it failed. */
  error: Error | undefined;
  reading: boolean;
}

export interface About {
  /** A change of this project concerns it; '*': of any. */
  project?: string;
  environment?: string;
  /** How soon it is worth reading again although nothing was told; null: it is not. */
  everyMs?(data: unknown): number | null;
}

/** Changes come in flocks; this long they are waited for. */
const settleMs = 30;
const maxRetryMs = 15_000;

export class Reading<T> {
  snapshot: Snapshot<T> = { data: undefined, error: undefined, reading: true };
  read: () => Promise<T>;
  about: About;
  readonly #watchers = new Set<() => void>();
  #running = false;
  #again = false;
  #startedAt = 0;
  #retryMs = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #dueAt = Number.POSITIVE_INFINITY;

  constructor(read: () => Promise<T>, about: About) {
    this.read = read;
    this.about = about;
  }

  get isShown(): boolean {
    return this.#watchers.size > 0;
  }

  watch = (watcher: () => void): (() => void) => {
    this.#watchers.add(watcher);
    if (this.#watchers.size === 1) this.touch(0);
    return () => {
      this.#watchers.delete(watcher);
      if (!this.isShown) this.#cancel();
    };
  };

  /** It may have changed. */
  touch(delayMs = settleMs): void {
    // A tab nobody looks at reads when it is looked at again.
    if (!this.isShown || (document.hidden && this.snapshot.data !== undefined)) return;
    if (this.#running) {
      this.#again = true;
      return;
    }
    const now = Date.now();
    const dueAt = Math.max(now + delayMs, this.#startedAt + gapMs(), waitUntil.get());
    if (dueAt >= this.#dueAt) return;
    this.#cancel();
    this.#dueAt = dueAt;
    this.#timer = setTimeout(() => this.#run(), dueAt - now);
  }

  #cancel(): void {
    clearTimeout(this.#timer);
    this.#dueAt = Number.POSITIVE_INFINITY;
  }

  async #run(): Promise<void> {
    this.#cancel();
    this.#running = true;
    this.#again = false;
    this.#startedAt = Date.now();
    this.#show({ reading: true });
    try {
      const data = await this.read();
      this.#retryMs = 0;
      this.#show({ data, error: undefined, reading: false });
    } catch (error) {
      if (!endsSession(error)) this.#show({ error: error as Error, reading: false });
    }
    this.#running = false;
    this.#goOn();
  }

  #goOn(): void {
    const { data, error } = this.snapshot;
    if (error !== undefined && isPassing(error)) {
      this.#retryMs = Math.min(maxRetryMs, Math.max(1000, this.#retryMs * 2));
      this.touch(this.#retryMs);
    } else if (this.#again) {
      this.touch();
    } else if (data !== undefined) {
      const everyMs = this.about.everyMs?.(data) ?? null;
      if (everyMs !== null) this.touch(everyMs);
    }
  }

  #show(change: Partial<Snapshot<T>>): void {
    this.snapshot = { ...this.snapshot, ...change };
    for (const watcher of [...this.#watchers]) watcher();
  }
}

/** It is not the request's fault: the same request may succeed later. */
export function isPassing(error: Error): boolean {
  return !(error instanceof SluiceError) || error.status === 0 || error.status === 429 || error.status >= 500;
}
