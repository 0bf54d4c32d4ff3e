// Waits that grow while something keeps failing, with some randomness, so that many who wait do not come back at once.

export interface BackOff {
  /** How long to wait after one more failure; at least as long as the server asked for. */
  next(atLeastMs?: number): number;
  reset(): void;
}

export function backOff(firstMs: number, longestMs: number, random: () => number = Math.random): BackOff {
  let failures = 0;
  return {
    next(atLeastMs = 0) {
      const growing = Math.min(longestMs, firstMs * 2 ** Math.min(failures++, 30));
      return Math.max(atLeastMs, growing * (0.5 + random() / 2));
    },
    reset() {
      failures = 0;
    },
  };
}
