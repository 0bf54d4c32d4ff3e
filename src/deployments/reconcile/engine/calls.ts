// Calls to engines that start or stop an instance. They take their time, and no look waits for them. Calls about the same
// instance run one after another.
import { ChangedMeanwhile } from '../../../db/guarded.ts';
import type { EnvironmentKey } from '../../../environments/key.ts';
import type { Log } from '../../../lib/log.ts';

export class EngineCalls {
  readonly #last = new Map<string, Promise<void>>();
  readonly #log: Log;
  readonly #onDone: (key: EnvironmentKey) => void;

  constructor(log: Log, onDone: (key: EnvironmentKey) => void) {
    this.#log = log;
    this.#onDone = onDone;
  }

  run(key: EnvironmentKey, instance: string, call: () => Promise<void>): void {
    const previous = this.#last.get(instance) ?? Promise.resolve();
    const running = previous
      .then(call)
      .catch((error) => this.#report(instance, error))
      .finally(() => {
        if (this.#last.get(instance) === running) this.#last.delete(instance);
        this.#onDone(key);
      });
    this.#last.set(instance, running);
  }

  #report(instance: string, error: unknown): void {
    if (error instanceof ChangedMeanwhile) this.#log.info({ instance }, 'another process has the instance by now');
    else this.#log.warn({ err: error, instance }, 'a call to the engine failed');
  }

  /** The instances with a call under way. */
  busy(): ReadonlySet<string> {
    return new Set(this.#last.keys());
  }

  /** Waits for every call under way. */
  async settle(): Promise<void> {
    await Promise.allSettled(this.#last.values());
  }
}
