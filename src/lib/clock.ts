/** Code that needs the time takes a Clock, so that tests do not have to sleep. */
export interface Clock {
  /** Milliseconds since the epoch. People and other machines correct this time: it may jump, also back. */
  now(): number;
  /** Milliseconds since some moment, which never jump. Where it is missing, `now` is taken not to jump. */
  steady?(): number;
}

export const systemClock: Clock = { now: () => Date.now(), steady: () => performance.now() };

/** For intervals and time limits within this process: the time since some moment, whatever happens to the clock. */
export const steadyOf = (clock: Clock): Clock => ({ now: () => clock.steady?.() ?? clock.now() });
