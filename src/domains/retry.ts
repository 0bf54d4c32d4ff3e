// When a failed certificate request is retried, and when a certificate is renewed. No I/O.

const minuteMs = 60_000;
const hourMs = 3600_000;

/** The delay after the first failure, the second and so on; the last one also applies to all further failures. */
const waitsMs = [
  ...[1, 2, 5, 15, 30].map((minutes) => minutes * minuteMs),
  ...[1, 2, 4, 8, 12].map((hours) => hours * hourMs),
];
const jitter = 0.2;
/** How long to wait if an authority reports a rate limit without a Retry-After. */
export const defaultLimitMs = hourMs;
/** A longer Retry-After of an authority is cut to this. */
const maxRetryAfterMs = 7 * 24 * hourMs;

/** `failures`: consecutive ones, including this one. `retryAfterMs`: what the authority asked for. */
export function retryDelayMs(failures: number, retryAfterMs: number | null, random: number): number {
  const waitMs = waitsMs[Math.min(failures, waitsMs.length) - 1]!;
  const spreadMs = waitMs * (1 - jitter + 2 * jitter * random);
  return Math.round(Math.max(spreadMs, Math.min(retryAfterMs ?? 0, maxRetryAfterMs)));
}

/** At two thirds of the certificate's lifetime. */
export function renewAt(notBefore: number, notAfter: number): number {
  return Math.round(notBefore + ((notAfter - notBefore) * 2) / 3);
}

/** For a new certificate: no sooner than in an hour, so that a wrong clock does not cause one renewal after another. */
export function firstRenewAt(notBefore: number, notAfter: number, nowMs: number): number {
  return Math.max(renewAt(notBefore, notAfter), nowMs + Math.round(Math.min(hourMs, (notAfter - notBefore) / 3)));
}
