// A background loop: runs a step, then waits for the interval or for wake(). Two steps never run at once. If a step
// throws, the error is reported and the loop continues. stop() waits for the running step.
//
// Other work gets its turn of the event loop between two steps, even if each step wakes the loop: what the next one waits
// for may be among it, such as the commit of a group of transactions (db/sqlite/writer.ts).
import { systemTimers, type Timers } from './timers.ts';

export interface Loop {
  /** Runs the next step as soon as possible, without waiting for the interval. */
  wake(): void;
  stop(): Promise<void>;
}

export interface LoopOptions {
  intervalMs: number;
  step: () => Promise<void>;
  onError: (error: unknown) => void;
  timers?: Timers;
}

const nextTurn = () => new Promise<void>((resolve) => setImmediate(resolve));

export function startLoop({ intervalMs, step, onError, timers = systemTimers }: LoopOptions): Loop {
  let stopped = false;
  let woken = false;
  let rouse: (() => void) | null = null;

  const rest = () =>
    new Promise<void>((resolve) => {
      const cancel = timers.after(intervalMs, resolve);
      rouse = () => {
        cancel();
        resolve();
      };
    });

  const running = (async () => {
    while (!stopped) {
      woken = false;
      try {
        await step();
      } catch (error) {
        onError(error);
      }
      if (!stopped && !woken) await rest();
      rouse = null;
      if (!stopped && woken) await nextTurn();
    }
  })();

  return {
    wake() {
      woken = true;
      rouse?.();
    },
    stop() {
      stopped = true;
      rouse?.();
      return running;
    },
  };
}
