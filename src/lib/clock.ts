/** Code that needs the time takes a Clock, so that tests do not have to sleep. */
export interface Clock {
  /** Milliseconds since the epoch. People and other machines correct this time: it may jump, also back. */
  now(): number;
  /** Milliseconds since some moment, which never jump. Where it is missing, `now` is taken not to jump. */
  steady?(): number;
  /** The time of day that all processes of an installation agree on. Missing where one process is all there is. */
  shared?(): number;
  /** For times that are stored and waited for: it does not jump while this process runs. */
  lasting?(): number;
}

export const systemClock: Clock = { now: () => Date.now(), steady: () => performance.now() };

/** For intervals and time limits within this process: the time since some moment, whatever happens to the clock. */
export const steadyOf = (clock: Clock): Clock => ({ now: () => clock.steady?.() ?? clock.now() });

/** For what several processes measure and compare. */
export const sharedOf = (clock: Clock): Clock => ({ now: () => clock.shared?.() ?? clock.now() });

/** For deadlines and everything else that is due at a stored time. */
export const lastingOf = (clock: Clock): Clock => ({ now: () => clock.lasting?.() ?? clock.now() });

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
