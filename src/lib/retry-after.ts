/** Of the header: seconds, or a date. */
export function readRetryAfter(header: string | undefined, nowMs: number): number | null {
  if (header === undefined) return null;
  if (/^\d{1,9}$/.test(header)) return Number(header) * 1000;
  // A date of HTTP begins with the day of the week; Date.parse takes much else for a date.
  const at = /^[A-Za-z]{3,9}, /.test(header) ? Date.parse(header) : Number.NaN;
  return Number.isNaN(at) ? null : Math.max(0, at - nowMs);
}
