// Histograms of latencies: how many requests took how long. No I/O.

/** Upper bounds of the latency histogram in milliseconds; one more bucket holds everything slower. */
export const latencyBoundsMs = [
  1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 70, 100, 150, 200, 300, 500, 700, 1000, 1500, 2000, 3000, 5000, 10_000, 30_000,
] as const;

export const emptyLatency = (): number[] => new Array<number>(latencyBoundsMs.length + 1).fill(0);

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

const indexByMs: Uint8Array = Uint8Array.from({ length: 1001 }, (_, ms) => slowIndexOf(ms));

function slowIndexOf(ms: number): number {
  const index = latencyBoundsMs.findIndex((bound) => ms <= bound);
  return index === -1 ? latencyBoundsMs.length : index;
}

/** Which latency bucket a duration in milliseconds falls into. */
export const latencyIndexOf = (ms: number): number =>
  ms <= 1000 ? indexByMs[Math.max(0, Math.ceil(ms))]! : slowIndexOf(ms);

export function histogramOf(durationsMs: readonly number[]): number[] {
  const histogram = emptyLatency();
  for (const ms of durationsMs) histogram[latencyIndexOf(ms)]!++;
  return histogram;
}
