// Calls to engines that start or stop an instance, and the last lines an instance wrote. The calls run in the
// background, so that no pass waits for them; calls about the same instance run one after another.
import { ChangedMeanwhile } from '../../db/guarded.ts';
import type { Engine } from '../../engines/engine.ts';
import { type EnvironmentKey, keyOf } from '../../environments/environment-key.ts';
import type { Log } from '../../lib/log.ts';
import type { LoggedInstance } from '../../logs/store/segments.ts';
import type { InstanceRow } from '../instance-queries.ts';

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

const maxLines = 50;
const maxLineLength = 2000;

/** The last lines an instance wrote; none if the engine does not answer. */
export async function readLogTail(engine: Engine, instance: string): Promise<string[]> {
  const lines = await engine.logs(instance, { tail: maxLines }).catch(() => []);
  return lines.map(({ text }) => text.slice(0, maxLineLength));
}

type Removed = Pick<InstanceRow, 'id' | 'project_id' | 'environment' | 'revision'>;

/** Stores the last lines of an instance that has ended, before it is removed. */
export type TakeLogs = (instance: LoggedInstance, engine: Engine) => Promise<void>;

/** For engines to call when an instance has ended and is about to be removed. */
export const lastLines = (takeLogs: TakeLogs | undefined, row: Removed, engine: Engine) => async (): Promise<void> =>
  takeLogs?.({ id: row.id, key: keyOf(row), revision: row.revision }, engine);
