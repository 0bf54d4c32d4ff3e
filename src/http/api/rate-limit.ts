// The limit, without I/O: a sliding window over two one-minute cells. What was admitted in the previous cell counts in
// proportion to how much of it the last sixty seconds still cover. Refused requests are not counted.

export const cellMs = 60_000;

export interface Usage {
  /** Admitted in the cell before. */
  previous: number;
  /** Admitted in this cell. */
  current: number;
}

export const cellOf = (nowMs: number): number => Math.floor(nowMs / cellMs);

const weight = (nowMs: number): number => 1 - (nowMs % cellMs) / cellMs;

/** How many requests this cell may admit in all, as of now. */
export function capOf(limit: number, previous: number, nowMs: number): number {
  return Math.floor(limit - previous * weight(nowMs));
}

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

/** Whole seconds after which a request is admitted, if no other one comes first. */
export function retryAfterS(limit: number, { previous, current }: Usage, nowMs: number): number {
  const intoCell = nowMs % cellMs;
  const room = limit - current - 1;
  // Either the weight of the previous cell falls until there is room for one more, or this cell is full and the next
  // one has it as its previous. One millisecond more than exact arithmetic asks for makes up for its rounding.
  const waitMs = room >= 0 ? fallTimeMs(previous, room) - intoCell : cellMs - intoCell + fallTimeMs(current, limit - 1);
  return Math.max(1, Math.ceil((waitMs + 1) / 1000));
}

/** How far into a cell the share of the cell before it has fallen to `room`. */
function fallTimeMs(previous: number, room: number): number {
  return previous <= room ? 0 : (1 - room / previous) * cellMs;
}
