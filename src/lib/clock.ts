// The clocks of the service. Code that needs the time takes a Clock, so that tests do not have to sleep. What is deleted for
// its age goes by db/retention-clock.ts.

export interface Clock {
  /** The wall clock, in milliseconds since the epoch. People and other machines correct it: it may jump, also back. */
  now(): number;
  /** The monotonic clock: milliseconds since some moment, which never jump. Where it is missing, `now` is taken not to jump. */
  monotonic?(): number;
  /** The database clock, which all processes of an installation share. Missing on SQLite: there is one process. */
  database?(): number;
  /** For times that are stored and waited for: the database clock, or one that does not jump while this process runs. */
  deadline?(): number;
}

export const systemClock: Clock = { now: () => Date.now(), monotonic: () => performance.now() };

/** For intervals and time limits within this process. */
export const monotonicOf = (clock: Clock): Clock => ({ now: () => clock.monotonic?.() ?? clock.now() });

/** For what several processes measure and compare. */
export const databaseOf = (clock: Clock): Clock => ({ now: () => clock.database?.() ?? clock.now() });

/** For deadlines, retries and everything else that is due at a stored time. */
export const deadlineOf = (clock: Clock): Clock => ({ now: () => clock.deadline?.() ?? clock.now() });

/** Timers and the measuring of durations. They come in from outside, so that a simulation can replace them. */
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
