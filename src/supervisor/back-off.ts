// How long to wait before a process that ended is started again. The first time not at all: connections are waiting.

const firstWaitMs = 100;
const longestWaitMs = 10_000;
/** A process that was ready for this long did not end because of how it started. */
const settledMs = 1000;

/** How often in a row, the end of now included, it ended before it was ready or soon after. */
export function countEarlyEnds(before: number, readyForMs: number | null): number {
  return readyForMs !== null && readyForMs >= settledMs ? 0 : before + 1;
}

export function restartAfterMs(earlyEnds: number): number {
  return earlyEnds === 0 ? 0 : Math.min(firstWaitMs * 2 ** (earlyEnds - 1), longestWaitMs);
}
