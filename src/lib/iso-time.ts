import { Memo } from './bounded-cache.ts';

const isoTimes = new Memo<string, number>(5000);
const format = (ms: number): string => new Date(ms).toISOString();

/** Formatting a time costs more than finding it here, and responses show the same few times again and again. */
export const isoTime = (ms: number): string => isoTimes.get(ms, format);

export const isoTimeOrNull = (ms: number | null): string | null => (ms === null ? null : isoTime(ms));
