// Background loops. A loop runs a step, then waits for its interval or for wake(). Two steps never run at once. If a step
// throws, the error is reported and the loop continues. stop() waits for the running step.
//
// The loops of a service have a heartbeat each. A step cannot be ended from outside, so one that exceeds its limit is a
// reason to restart the process, and `/livez` says so.

import { systemTimers, type Timers } from './clock.ts';
import type { Log } from './log.ts';

interface NamedLoop extends Pick<LoopOptions, 'intervalMs' | 'step'> {
  name: string;
  /** How long one step may take. Every statement and call in it has a shorter limit of its own. */
  limitMs?: number;
}

interface StuckLoop {
  name: string;
  /** For how long its step has been running. */
  forMs: number;
}

export interface Loops {
  start(loop: NamedLoop): Loop;
  /** The loops whose step takes longer than it may. */
  stuck(): StuckLoop[];
}

const defaultLimitMs = 300_000;

interface Heartbeat {
  name: string;
  limitMs: number;
  /** When the running step began; null: none is running. */
  since: number | null;
}

export function createLoops(log: Log, timers: Timers = systemTimers): Loops {
  const heartbeats = new Set<Heartbeat>();
  return {
    start({ name, intervalMs, step, limitMs = defaultLimitMs }) {
      const heartbeat: Heartbeat = { name, limitMs, since: null };
      heartbeats.add(heartbeat);
      const loop = startLoop({
        intervalMs,
        timers,
        async step() {
          heartbeat.since = timers.now();
          try {
            await step();
          } finally {
            heartbeat.since = null;
          }
        },
        onError: (error) => log.error({ err: error, loop: name }, 'a loop failed'),
      });
      return {
        wake: loop.wake,
        async stop() {
          await loop.stop();
          heartbeats.delete(heartbeat);
        },
      };
    },
    stuck() {
      const now = timers.now();
      return [...heartbeats]
        .map(({ name, limitMs, since }) => ({ name, limitMs, forMs: since === null ? 0 : now - since }))
        .filter(({ forMs, limitMs }) => forMs > limitMs)
        .map(({ name, forMs }) => ({ name, forMs }));
    },
  };
}

export interface Loop {
  /** Runs the next step as soon as possible, without waiting for the interval. */
  wake(): void;
  stop(): Promise<void>;
}

interface LoopOptions {
  intervalMs: number;
  step: () => Promise<void>;
  onError: (error: unknown) => void;
  timers?: Timers;
}

/**
 * Between two steps other work gets a turn of the event loop, even if each step wakes the loop: the next step may wait for
 * that work, such as the commit of a group of transactions (db/sqlite-writer.ts).
 */
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
