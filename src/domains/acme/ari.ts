// ACME renewal information (RFC 9773): the authority suggests when a certificate should be renewed. No I/O.
import { renewAt } from '../retry.ts';

const hourMs = 3600_000;
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
