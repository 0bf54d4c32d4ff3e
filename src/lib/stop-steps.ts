// What was started is stopped in reverse order: when the service stops, or when a later part of it fails to start. A step
// that throws or takes too long is logged by its name and keeps none of the others from running.

import { systemTimers, type Timers } from './clock.ts';
import type { Log } from './log.ts';

interface StopStep {
  name: string;
  stop(): unknown;
  limitMs: number;
}

const defaultLimitMs = 20_000;

export class StopSteps {
  readonly #steps: StopStep[] = [];
  readonly #log: Log;
  readonly #timers: Timers;
  #done: Promise<void> | undefined;

  constructor(log: Log, timers: Timers = systemTimers) {
    this.#log = log;
    this.#timers = timers;
  }

  add(name: string, stop: () => unknown, limitMs = defaultLimitMs): void {
    this.#steps.push({ name, stop, limitMs });
  }

  /** Runs them once, however often it is called. It never rejects. */
  run(): Promise<void> {
    this.#done ??= this.#runAll();
    return this.#done;
  }

  async #runAll(): Promise<void> {
    for (const { name, stop, limitMs } of this.#steps.toReversed()) {
      try {
        await this.#withinLimit(stop, limitMs);
      } catch (error) {
        this.#log.error({ err: error, part: name }, 'a part did not stop in order');
      }
    }
  }

  async #withinLimit(stop: () => unknown, limitMs: number): Promise<void> {
    const { promise: late, reject } = Promise.withResolvers<never>();
    const cancel = this.#timers.after(limitMs, () => reject(new Error(`it took longer than ${limitMs / 1000} s`)));
    try {
      await Promise.race([stop(), late]);
    } finally {
      cancel();
    }
  }
}
