/** Milliseconds since the epoch. Code that needs the time takes a Clock, so that tests do not have to sleep. */
export interface Clock {
  now(): number;
}

export const systemClock: Clock = { now: () => Date.now() };
