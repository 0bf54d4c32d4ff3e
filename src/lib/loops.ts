// The background loops of one service, each with a heartbeat. A step cannot be ended from outside, so one that takes
// longer than its limit is a reason to restart the process, and `/livez` says so.
import type { Log } from './log/log.ts';
import { type Loop, type LoopOptions, startLoop } from './loop.ts';
import { systemTimers, type Timers } from './timers.ts';

export interface NamedLoop extends Pick<LoopOptions, 'intervalMs' | 'step'> {
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
