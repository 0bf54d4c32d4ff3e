// When a failed delivery is sent again, and when it is given up.

const second = 1000;
const minute = 60 * second;
const hour = 60 * minute;

export const defaultScheduleMs: readonly number[] = [
  5 * second,
  30 * second,
  2 * minute,
  10 * minute,
  30 * minute,
  2 * hour,
  5 * hour,
  10 * hour,
  14 * hour,
  20 * hour,
  24 * hour,
];

const jitter = 0.2;
const longestWaitMs = 24 * hour;

/** ± 20 %, so that deliveries that failed together are not all retried at the same time; `random` is from 0 to 1. */
export const jittered = (ms: number, random: number): number => Math.round(ms * (1 + jitter * (2 * random - 1)));

/** The longest that this schedule lets a failed delivery wait. */
export const longestDelayMs = (schedule: readonly number[]): number => jittered(Math.max(...schedule), 1);

/**
 * How long to wait after the attempt with this number (the first is 1); null: give up. At least as long as the
 * receiver's Retry-After asks for, up to a day.
 */
export function retryDelayMs(
  tried: number,
  retryAfterMs: number | null,
  random: number,
  schedule: readonly number[] = defaultScheduleMs,
): number | null {
  const ms = schedule[tried - 1];
  if (ms === undefined) return null;
  return Math.max(jittered(ms, random), Math.min(retryAfterMs ?? 0, longestWaitMs));
}
