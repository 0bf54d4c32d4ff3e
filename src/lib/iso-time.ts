const isoTimes = new Map<number, string>();

/** Formatting a time costs more than finding it here, and responses show the same few times again and again. */
export function isoTime(ms: number): string {
  let text = isoTimes.get(ms);
  if (text === undefined) {
    if (isoTimes.size >= 5000) isoTimes.clear();
    text = new Date(ms).toISOString();
    isoTimes.set(ms, text);
  }
  return text;
}

export const isoTimeOrNull = (ms: number | null): string | null => (ms === null ? null : isoTime(ms));
