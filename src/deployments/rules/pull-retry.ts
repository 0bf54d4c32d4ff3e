// When a pull that failed is tried again. No I/O.

const firstWaitMs = 2_000;
const longestWaitMs = 120_000;
const jitter = 0.2;

/**
 * After this many failures in a row. ± 20 %, so that deployments that wait for the same registry do not all come back to
 * it at once; `random` is from 0 to 1.
 */
export function pullRetryMs(failures: number, random: number): number {
  const waitMs = Math.min(longestWaitMs, firstWaitMs * 2 ** (failures - 1));
  return Math.round(waitMs * (1 - jitter + 2 * jitter * random));
}
