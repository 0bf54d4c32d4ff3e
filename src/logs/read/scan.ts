// Finds the entries of one segment that a reader asks for. Text is searched for in the bytes as they are; only around what
// is found they are taken apart.
import { newline, textOffset } from '../../lib/log-lines.ts';
import { type Entry, type EntryLines, entryAround, groupEntries, readEntry, timeAt } from './entries.ts';

export type Order = 'newest' | 'oldest';

export interface ScanQuery {
  /** Times of entries, both included. */
  from: string;
  to: string;
  /** Of kinds, in small letters; null: any. */
  kind: string | null;
  search: string | null;
  order: Order;
  limit: number;
  /** Only entries that come after this one in the order; without a time, it is one of this segment. */
  beyond: { time: string | null; offset: number } | null;
  /** Nothing else is looked at, not even for the beginning or the end of an entry. */
  within?: { fromByte: number; toByte: number };
}

/** At most `limit`, in the order that was asked for. */
export function scan(segment: Buffer, query: ScanQuery): Entry[] {
  const { within, beyond } = query;
  if (!within) return scanAll(segment, query);
  const { fromByte, toByte } = within;
  const own = { ...query, beyond: beyond && { ...beyond, offset: beyond.offset - fromByte } };
  const entries = scanAll(segment.subarray(fromByte, toByte), own);
  return entries.map((entry) => ({ ...entry, offset: entry.offset + fromByte }));
}

function scanAll(raw: Buffer, query: ScanQuery): Entry[] {
  const places = query.search === null ? groupEntries(raw) : search(raw, query.search);
  if (query.order === 'newest') places.reverse();
  const found: Entry[] = [];
  const seen = new Set<number>();
  for (const place of places) {
    if (found.length === query.limit) break;
    const lines = typeof place === 'number' ? entryAround(raw, place) : place;
    if (seen.has(lines.start) || !isWanted(raw, lines, query)) continue;
    seen.add(lines.start);
    const entry = readEntry(raw, lines);
    if (query.search === null || isMatch(entry.text, query.search)) found.push(entry);
  }
  return found;
}

function isWanted(raw: Buffer, { start }: EntryLines, { from, to, kind, beyond, order }: ScanQuery): boolean {
  if (kind !== null && String.fromCharCode(raw[start]! | 0x20) !== kind) return false;
  const time = timeAt(raw, start);
  if (time < from || time > to) return false;
  if (!beyond) return true;
  if (beyond.time !== null && time !== beyond.time) return order === 'newest' ? time < beyond.time : time > beyond.time;
  return order === 'newest' ? start < beyond.offset : start > beyond.offset;
}

/** A search in small letters finds capitals too; one with capitals finds what is written so. */
const ignoresCase = (text: string): boolean => text === text.toLowerCase();

const isMatch = (text: string, wanted: string): boolean =>
  (ignoresCase(wanted) ? text.toLowerCase() : text).includes(wanted);

/** Where the lines begin that contain the text, oldest first. */
function search(raw: Buffer, text: string): (number | EntryLines)[] {
  const next = ignoresCase(text) && /[a-z\u0080-\uffff]/.test(text) ? finderOfAnyCase(raw, text) : finder(raw, text);
  const starts: number[] = [];
  for (let at = next(0); at !== -1; ) {
    const start = raw.lastIndexOf(newline, at === 0 ? 0 : at - 1) + 1;
    if (at < start + textOffset) {
      at = next(start + textOffset); // in front of the text of its line
      continue;
    }
    starts.push(start);
    at = next(raw.indexOf(newline, at));
  }
  return starts;
}

type Finder = (from: number) => number;

function finder(raw: Buffer, text: string): Finder {
  const wanted = Buffer.from(text);
  return (from) => raw.indexOf(wanted, from);
}

/** Bytes as characters, one each, so that places are the same. What it finds too much, `isMatch` leaves out. */
function finderOfAnyCase(raw: Buffer, text: string): Finder {
  const bytes = raw.toString('latin1');
  const wanted = Buffer.from(text).toString('latin1');
  // Letters beyond ASCII have capitals of other bytes: they are left to `isMatch`.
  const pattern = wanted.replaceAll(/[\x80-\xff]+/g, '\0').replaceAll(/[.*+?^${}()|[\]\\/]/g, '\\$&');
  const expression = new RegExp(pattern.replaceAll('\0', '[\\x80-\\xff]+'), 'gi');
  return (from) => {
    expression.lastIndex = from;
    return expression.exec(bytes)?.index ?? -1;
  };
}
