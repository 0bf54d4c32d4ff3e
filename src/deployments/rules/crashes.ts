// How often instances of a revision ended by themselves, and when the next one may start. No I/O.
import type { Failure } from './rollout.ts';

const firstWaitMs = 500;
const longestWaitMs = 30_000;
/** A revision that has stayed up this long starts with a clean slate. */
const forgivenAfterMs = 5 * 60_000;
/** One crash may be bad luck. */
const tolerated = 2;

interface Record {
  count: number;
  lastAt: number;
  failure: Failure;
  logTail: string[];
}

export class Crashes {
  readonly #records = new Map<string, Record>();

  note(revision: string, failure: Failure, logTail: string[], nowMs: number): void {
    const known = this.#records.get(revision);
    const count = known && nowMs - known.lastAt < forgivenAfterMs ? known.count + 1 : 1;
    this.#records.set(revision, { count, lastAt: nowMs, failure, logTail });
  }

  /** When another instance may be started. */
  nextStartAt(revision: string): number {
    const known = this.#records.get(revision);
    if (!known) return 0;
    return known.lastAt + Math.min(longestWaitMs, firstWaitMs * 2 ** (known.count - 1));
  }

  /** What is wrong with it. That an instance ended counts only once it happened too often to be bad luck. */
  troubleOf(revision: string): Failure | null {
    const known = this.#records.get(revision);
    if (!known) return null;
    return known.failure.code === 'crashed' && known.count <= tolerated ? null : known.failure;
  }

  logTailOf(revision: string): string[] {
    return this.#records.get(revision)?.logTail ?? [];
  }
}
