/** Reads a Retry-After header, in seconds or as a date; returns milliseconds from now. */
export function readRetryAfter(header: string | undefined, nowMs: number): number | null {
  if (header === undefined) return null;
  if (/^\d{1,9}$/.test(header)) return Number(header) * 1000;
  // An HTTP date starts with the day of the week; Date.parse also accepts much that is not a date.
  const at = /^[A-Za-z]{3,9}, /.test(header) ? Date.parse(header) : Number.NaN;
  return Number.isNaN(at) ? null : Math.max(0, at - nowMs);
}
