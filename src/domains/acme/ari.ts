// ACME renewal information (RFC 9773): the authority suggests when a certificate should be renewed. No I/O.
import { renewAt } from '../retry.ts';

const hourMs = 3600_000;
const askEveryMs = 6 * hourMs;
const askAtLeastEveryMs = 24 * hourMs;

export interface Window {
  start: number;
  end: number;
}

/** The name of a certificate there: its issuer's key and its serial number, both in hexadecimal here. */
export function ariId(authorityKeyHex: string, serialHex: string): string {
  const even = serialHex.length % 2 === 0 ? serialHex : `0${serialHex}`;
  // As DER writes a number: one whose first bit is set has a zero byte in front.
  const der = Number.parseInt(even.slice(0, 2), 16) >= 0x80 ? `00${even}` : even;
  return [authorityKeyHex, der].map((hex) => Buffer.from(hex, 'hex').toString('base64url')).join('.');
}

/** The window the authority suggests; null: its answer is none. */
export function readWindow(document: unknown): Window | null {
  const { suggestedWindow } = (document ?? {}) as { suggestedWindow?: { start?: unknown; end?: unknown } };
  const [start, end] = [suggestedWindow?.start, suggestedWindow?.end].map((at) => Date.parse(String(at)));
  if (start === undefined || end === undefined || Number.isNaN(start) || Number.isNaN(end)) return null;
  return end > start ? { start, end } : null;
}

/** Somewhere in the window, and never later than two thirds of the certificate's life. */
export function renewalMoment(
  certificate: { not_before: number; not_after: number },
  window: Window | null,
  random: number,
): number {
  const ownMs = renewAt(certificate.not_before, certificate.not_after);
  if (!window) return ownMs;
  return Math.min(ownMs, Math.round(window.start + (window.end - window.start) * random));
}

/** When the authority is asked again: not sooner than every six hours, later if it wants, once a day at least. */
export function askAgainMs(askedMs: number | null): number {
  return Math.min(Math.max(askedMs ?? askEveryMs, askEveryMs), askAtLeastEveryMs);
}
