// When a certificate is tried for again, and when it is renewed. No I/O.

const minuteMs = 60_000;
const hourMs = 3600_000;

/** After the first failure, the second and so on; the last one for all that follow. */
const waitsMs = [
  ...[1, 2, 5, 15, 30].map((minutes) => minutes * minuteMs),
  ...[1, 2, 4, 8, 12].map((hours) => hours * hourMs),
];
const jitter = 0.2;
/** Where an authority says "too many" and not for how long. */
export const defaultLimitMs = hourMs;
/** However long an authority asks for: somebody has to notice that it is well again. */
const maxAskedMs = 7 * 24 * hourMs;

/** `failures` one after the other, this one included. An authority that asked for more time gets it. */
export function retryDelayMs(failures: number, askedMs: number | null, random: number): number {
  const waitMs = waitsMs[Math.min(failures, waitsMs.length) - 1]!;
  const spreadMs = waitMs * (1 - jitter + 2 * jitter * random);
  return Math.round(Math.max(spreadMs, Math.min(askedMs ?? 0, maxAskedMs)));
}

/** Two thirds of its life. */
export function renewAt(notBefore: number, notAfter: number): number {
  return Math.round(notBefore + ((notAfter - notBefore) * 2) / 3);
}

/** The same for one that was just issued: where our clock is wrong, it must not be renewed again and again. */
export function firstRenewAt(notBefore: number, notAfter: number, nowMs: number): number {
  return Math.max(renewAt(notBefore, notAfter), nowMs + Math.round(Math.min(hourMs, (notAfter - notBefore) / 3)));
}
