/** What waits and measures how long something takes. It comes in from outside, so that a simulation can replace it. */
export interface Timers {
  /** Milliseconds that only rise, whatever happens to the clock on the wall. */
  now(): number;
  /** Returns what cancels it. */
  after(delayMs: number, work: () => void): () => void;
}

export const systemTimers: Timers = {
  now: () => performance.now(),
  after(delayMs, work) {
    const timer = setTimeout(work, delayMs);
    return () => clearTimeout(timer);
  },
};
