/** Milliseconds since the epoch. Everything that asks for the time takes one of these, so tests need no sleeping. */
export interface Clock {
  now(): number;
}

export const systemClock: Clock = { now: () => Date.now() };
