// The arithmetic of the rate limit: a sliding window over two one-minute cells. Requests admitted in the previous cell
// count in proportion to the part of that cell within the last sixty seconds. Refused requests do not count.

export const cellMs = 60_000;

export interface Usage {
  /** Admitted in the previous cell. */
  previous: number;
  /** Admitted in this cell. */
  current: number;
}

export const cellOf = (nowMs: number): number => Math.floor(nowMs / cellMs);

const weight = (nowMs: number): number => 1 - (nowMs % cellMs) / cellMs;

/** How many requests the current cell may admit in total, as of now. */
export function capOf(limit: number, previous: number, nowMs: number): number {
  return Math.floor(limit - previous * weight(nowMs));
}

/** How many of the requests before count now. */
export const weighed = ({ previous, current }: Usage, nowMs: number): number =>
  Math.ceil(previous * weight(nowMs)) + current;

export interface RateState {
  limit: number;
  remaining: number;
  /** Unix seconds at which the current cell ends. */
  resetAtS: number;
}

export function stateOf(limit: number, { previous, current }: Usage, nowMs: number): RateState {
  return {
    limit,
    remaining: Math.max(0, capOf(limit, previous, nowMs) - current),
    resetAtS: ((cellOf(nowMs) + 1) * cellMs) / 1000,
  };
}

/** Whole seconds after which a request is admitted, provided that no other one comes first. */
export function retryAfterS(limit: number, { previous, current }: Usage, nowMs: number): number {
  const intoCell = nowMs % cellMs;
  const room = limit - current - 1;
  // Either there is room once the weight of the previous cell has fallen far enough, or the current cell alone is full
  // and its weight must fall during the next cell. The extra millisecond makes up for rounding.
  const waitMs = room >= 0 ? fallTimeMs(previous, room) - intoCell : cellMs - intoCell + fallTimeMs(current, limit - 1);
  return Math.max(1, Math.ceil((waitMs + 1) / 1000));
}

/** The time into a cell at which the weighted count of the previous cell has fallen to `room`. */
function fallTimeMs(previous: number, room: number): number {
  return previous <= room ? 0 : (1 - room / previous) * cellMs;
}
