// How often instances of a revision ended by themselves, and when the next one may start. No I/O.
import { type EnvironmentKey, keyText } from '../../environments/key.ts';
import type { Failure } from './steps.ts';

const firstWaitMs = 500;
const longestWaitMs = 30_000;
/** A revision that has stayed up this long starts with a clean slate. */
const forgivenAfterMs = 5 * 60_000;
/** One crash may be bad luck. */
const tolerated = 2;

interface CrashRecord {
  count: number;
  lastAt: number;
  failure: Failure;
  logTail: string[];
}

/** By environment, then by revision. */
export class Crashes {
  readonly #records = new Map<string, Map<number, CrashRecord>>();

  note(key: EnvironmentKey, revision: number, failure: Failure, logTail: string[], nowMs: number): void {
    const known = this.#find(key, revision);
    const count = known && nowMs - known.lastAt < forgivenAfterMs ? known.count + 1 : 1;
    const others = this.#records.get(keyText(key)) ?? [];
    const recent = [...others].filter(([, { lastAt }]) => nowMs - lastAt < forgivenAfterMs);
    this.#records.set(keyText(key), new Map([...recent, [revision, { count, lastAt: nowMs, failure, logTail }]]));
  }

  /** When another instance may be started. */
  nextStartAt(key: EnvironmentKey, revision: number): number {
    const known = this.#find(key, revision);
    if (!known) return 0;
    return known.lastAt + Math.min(longestWaitMs, firstWaitMs * 2 ** (known.count - 1));
  }

  /** What is wrong with it. That an instance ended counts only once it happened too often to be bad luck. */
  troubleOf(key: EnvironmentKey, revision: number): Failure | null {
    const known = this.#find(key, revision);
    if (!known) return null;
    return known.failure.code === 'crashed' && known.count <= tolerated ? null : known.failure;
  }

  logTailOf(key: EnvironmentKey, revision: number): string[] {
    return this.#find(key, revision)?.logTail ?? [];
  }

  forget(key: EnvironmentKey): void {
    this.#records.delete(keyText(key));
  }

  #find(key: EnvironmentKey, revision: number): CrashRecord | undefined {
    return this.#records.get(keyText(key))?.get(revision);
  }
}
