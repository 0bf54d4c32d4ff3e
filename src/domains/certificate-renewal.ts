// When a failed certificate request is retried, and when a certificate is renewed: by its lifetime, or earlier if the
// authority suggests that (ACME renewal information, RFC 9773). No I/O.

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

const minAskMs = 6 * hourMs;
const maxAskMs = 24 * hourMs;

interface Window {
  start: number;
  end: number;
}

/** The certificate's identifier in renewal information. Both parameters are hexadecimal. */
export function ariId(authorityKeyHex: string, serialHex: string): string {
  const even = serialHex.length % 2 === 0 ? serialHex : `0${serialHex}`;
  // DER puts a zero byte in front of a number whose first bit is set.
  const der = Number.parseInt(even.slice(0, 2), 16) >= 0x80 ? `00${even}` : even;
  return [authorityKeyHex, der].map((hex) => Buffer.from(hex, 'hex').toString('base64url')).join('.');
}

/** The window that the authority suggests; null: the document has no valid one. */
export function readWindow(document: unknown): Window | null {
  const { suggestedWindow } = (document ?? {}) as { suggestedWindow?: { start?: unknown; end?: unknown } };
  const [start, end] = [suggestedWindow?.start, suggestedWindow?.end].map((at) => Date.parse(String(at)));
  if (start === undefined || end === undefined || Number.isNaN(start) || Number.isNaN(end)) return null;
  return end > start ? { start, end } : null;
}

/** A random time in the window, but no later than at two thirds of the certificate's lifetime. */
export function renewalMoment(
  certificate: { not_before: number; not_after: number },
  window: Window | null,
  random: number,
): number {
  const ownMs = renewAt(certificate.not_before, certificate.not_after);
  if (!window) return ownMs;
  return Math.min(ownMs, Math.round(window.start + (window.end - window.start) * random));
}

/** When to ask for renewal information again: after what Retry-After says, but within 6 to 24 hours. */
export function askAgainMs(retryAfterMs: number | null): number {
  return Math.min(Math.max(retryAfterMs ?? minAskMs, minAskMs), maxAskMs);
}
