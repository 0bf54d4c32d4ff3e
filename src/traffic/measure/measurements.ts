// What the data plane saw, per revision, in buckets of ten seconds. Each data plane keeps and stores its own counts as
// absolute numbers, so storing them twice is harmless and the sum over all data planes is right.

export const bucketMs = 10_000;

/** Upper bounds of the latency histogram in milliseconds; one more bucket holds everything slower. */
export const latencyBoundsMs = [
  1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 70, 100, 150, 200, 300, 500, 700, 1000, 1500, 2000, 3000, 5000, 10_000, 30_000,
] as const;

export interface Measurement {
  project: string;
  environment: string;
  revision: number;
  /** Start of the bucket, milliseconds since the epoch. */
  at: number;
  requests: number;
  /** Responses with a status of 500 or above, and requests that got no response or an incomplete one. */
  errors: number;
  /** Responses with a status from 400 to 499; a router of an earlier version does not count them. */
  clientErrors?: number;
  /** Requests per latency bucket; one entry more than there are bounds. */
  latency: number[];
}

/** How a request ended, as far as it counts. */
export type Outcome = 'ok' | 'client_error' | 'error';

export function outcomeOf(status: number): Outcome {
  if (status >= 500) return 'error';
  return status >= 400 ? 'client_error' : 'ok';
}

export const bucketOf = (nowMs: number): number => Math.floor(nowMs / bucketMs) * bucketMs;

/** The latency that this share of requests did not exceed, interpolated within its bucket; null without requests. */
export function quantileMs(latency: readonly number[], share: number): number | null {
  const total = latency.reduce((sum, count) => sum + count, 0);
  if (total === 0) return null;
  const rank = share * total;
  let seen = 0;
  for (const [index, count] of latency.entries()) {
    if (count > 0 && seen + count >= rank) {
      const low = index === 0 ? 0 : latencyBoundsMs[index - 1]!;
      const high = latencyBoundsMs[index] ?? low;
      return Math.round((low + ((high - low) * (rank - seen)) / count) * 100) / 100;
    }
    seen += count;
  }
  return latencyBoundsMs.at(-1)!;
}
