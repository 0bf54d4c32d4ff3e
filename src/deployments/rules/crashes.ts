// The backoff of a revision whose instances keep ending. Instances that were started together are one round: however
// many of them end, it is one failed round, and the backoff after it is the same for one replica and for twenty. No
// I/O.
import { type EnvironmentKey, keyText } from '../../environments/environment-key.ts';
import type { Failure } from './rollout.ts';

const firstWaitMs = 500;
const longestWaitMs = 30_000;
/** A revision that has stayed up this long starts with a clean slate. */
const forgivenAfterMs = 5 * 60_000;
/** One failed round may be bad luck. */
const tolerated = 2;

interface CrashRecord {
  /** Failed rounds in a row. */
  rounds: number;
  /** When the latest of them failed: its first instance ended. */
  failedAt: number;
  failure: Failure;
  logTail: string[];
}

interface Crash {
  failure: Failure;
  logTail: string[];
  /** When the instance that ended was started. */
  startedAt: number;
}

/** By environment, then by revision. */
export class Crashes {
  readonly #records = new Map<string, Map<number, CrashRecord>>();

  note(key: EnvironmentKey, revision: number, { failure, logTail, startedAt }: Crash, nowMs: number): void {
    const known = this.#find(key, revision);
    const recent = known && nowMs - known.failedAt < forgivenAfterMs ? known : null;
    // An instance that was started before the latest round failed belongs to that round, or to an earlier one.
    const isSameRound = recent !== null && startedAt <= recent.failedAt;
    const rounds = (recent?.rounds ?? 0) + (isSameRound ? 0 : 1);
    const failedAt = isSameRound ? recent.failedAt : nowMs;
    const others = [...(this.#records.get(keyText(key)) ?? [])];
    const kept = others.filter(([, record]) => nowMs - record.failedAt < forgivenAfterMs);
    this.#records.set(keyText(key), new Map([...kept, [revision, { rounds, failedAt, failure, logTail }]]));
  }

  /** When the next round may start. */
  nextStartAt(key: EnvironmentKey, revision: number): number {
    const known = this.#find(key, revision);
    if (!known) return 0;
    return known.failedAt + Math.min(longestWaitMs, firstWaitMs * 2 ** (known.rounds - 1));
  }

  /**
   * What is wrong with it. That an instance ended counts only once it happened too often to be bad luck; that it ran
   * out of memory is none.
   */
  troubleOf(key: EnvironmentKey, revision: number): Failure | null {
    const known = this.#find(key, revision);
    if (!known) return null;
    const mayBeBadLuck = known.failure.code === 'crashed' || known.failure.code === 'start_failed';
    return mayBeBadLuck && known.rounds <= tolerated ? null : known.failure;
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
