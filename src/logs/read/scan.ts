// Finds the entries of one segment that a reader asks for. A text is searched for in the raw bytes; only the lines around a
// match are parsed. The time this takes grows with the bytes and with nothing else, whatever the text and the lines are.
import { newline, textOffset, timeLength } from '../../lib/log-lines.ts';

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
  /** Nothing else is read, not even for the beginning or the end of an entry. */
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
  let characters = 0;
  const seen = new Set<number>();
  for (const place of places) {
    if (found.length === query.limit || characters >= maxPageCharacters) break;
    const lines = typeof place === 'number' ? entryAround(raw, place) : place;
    if (seen.has(lines.start) || !isWanted(raw, lines, query)) continue;
    seen.add(lines.start);
    const entry = readEntry(raw, lines);
    if (query.search !== null && !isMatch(entry.text, query.search)) continue;
    found.push(entry);
    characters += entry.text.length;
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
  includes(ignoresCase(wanted) ? text.toLowerCase() : text, wanted);

/** Knuth, Morris and Pratt: no character of the text is looked at more than twice, also where both repeat themselves. */
function includes(text: string, wanted: string): boolean {
  if (wanted.length < 8) return text.includes(wanted);
  const borders = [0];
  for (let at = 1, border = 0; at < wanted.length; at++) {
    while (border > 0 && wanted[at] !== wanted[border]) border = borders[border - 1]!;
    if (wanted[at] === wanted[border]) border++;
    borders.push(border);
  }
  for (let at = 0, matched = 0; at < text.length; at++) {
    while (matched > 0 && text[at] !== wanted[matched]) matched = borders[matched - 1]!;
    if (text[at] === wanted[matched]) matched++;
    if (matched === wanted.length) return true;
  }
  return false;
}

/** From so many matches on it is cheaper to take the whole segment apart than to look around each of them. */
const manyMatches = 50;

/** Where the lines begin that contain the text, oldest first; where they are many, the entries that these are part of. */
function search(raw: Buffer, text: string): (number | EntryLines)[] {
  const starts = startsOfMatches(raw, text);
  if (starts.length <= manyMatches) return starts;
  const matching = new Set(starts);
  return groupEntries(raw).filter(({ lines }) => lines.some((place, index) => index % 2 === 0 && matching.has(place)));
}

function startsOfMatches(raw: Buffer, text: string): number[] {
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

const maxAnchor = 16;

/**
 * Bytes as characters, one each, so that places are the same. It looks for the longest part of the text that is ASCII:
 * letters beyond have capitals of other bytes. What it finds too much, `isMatch` leaves out.
 */
function finderOfAnyCase(raw: Buffer, text: string): Finder {
  const bytes = raw.toString('latin1');
  const parts = text.match(/[\x00-\x7f]+/g) ?? [];
  const anchor = parts.reduce((longest, part) => (part.length > longest.length ? part : longest), '');
  const literal = anchor.slice(0, maxAnchor).replaceAll(/[.*+?^${}()|[\]\\/]/g, '\\$&');
  const expression = new RegExp(literal === '' ? '[\\x80-\\xff]' : literal, 'gi');
  return (from) => {
    expression.lastIndex = from;
    return expression.exec(bytes)?.index ?? -1;
  };
}

// An entry of a log is a line and those that continue it. A line continues the previous one of its stream if it is the rest
// of a line that was too long, or looks like part of a stack trace.

export interface Entry {
  /** Where it begins in its segment, which never changes: with instance and segment it names the entry. */
  offset: number;
  time: string;
  /** As in lib/log-lines.ts. */
  kind: string;
  text: string;
}

const carriageReturn = 0x0d;
const maxLines = 500;
const maxTextLength = 20_000;
/** The texts of a page together, roughly: from then on nothing more fits on it. */
export const maxPageCharacters = 1024 * 1024;
const beginnings = ['at ', 'Caused by', 'Suppressed: '].map((text) => Buffer.from(text));

/** An entry as the places of its lines. */
interface EntryLines {
  start: number;
  /** Start and end of each line, without its newline. */
  lines: number[];
  bytes: number;
}

const isLower = (letter: number): boolean => letter >= 0x61;
const streamAt = (raw: Buffer, start: number): number => raw[start]! | 0x20;

function continues(raw: Buffer, start: number): boolean {
  if (!isLower(raw[start]!)) return true;
  const first = raw[start + textOffset];
  if (first === 0x20 || first === 0x09) return true;
  return beginnings.some((text) => text.every((byte, index) => raw[start + textOffset + index] === byte));
}

const endOf = (raw: Buffer, start: number): number => raw.indexOf(newline, start);

/** All entries, in the order of their first lines. */
function groupEntries(raw: Buffer): EntryLines[] {
  const entries: EntryLines[] = [];
  const open = new Map<number, EntryLines>();
  for (let start = 0; start < raw.length; ) {
    const end = endOf(raw, start);
    const stream = streamAt(raw, start);
    const begun = open.get(stream);
    if (begun && hasRoom(begun) && continues(raw, start)) addLine(begun, start, end);
    else {
      const entry = { start, lines: [start, end], bytes: end - start };
      open.set(stream, entry);
      entries.push(entry);
    }
    start = end + 1;
  }
  return entries;
}

const hasRoom = ({ lines, bytes }: EntryLines): boolean => lines.length < 2 * maxLines && bytes < maxTextLength;

function addLine(entry: EntryLines, start: number, end: number): void {
  entry.lines.push(start, end);
  entry.bytes += end - start;
}

/** The entry that the line at `start` is part of. */
function entryAround(raw: Buffer, start: number): EntryLines {
  const own = entryFrom(raw, headOf(raw, start));
  return own.lines.includes(start) ? own : entryFrom(raw, start);
}

function headOf(raw: Buffer, start: number): number {
  const stream = streamAt(raw, start);
  let head = start;
  for (let at = start, left = maxLines; left > 0 && continues(raw, head) && at > 0; left--) {
    at = raw.lastIndexOf(newline, at - 2) + 1;
    if (streamAt(raw, at) === stream) head = at;
  }
  return head;
}

function entryFrom(raw: Buffer, start: number): EntryLines {
  const end = endOf(raw, start);
  const entry = { start, lines: [start, end], bytes: end - start };
  const stream = streamAt(raw, start);
  for (let at = end + 1, left = maxLines; at < raw.length && left > 0 && hasRoom(entry); left--) {
    const stop = endOf(raw, at);
    if (streamAt(raw, at) === stream) {
      if (!continues(raw, at)) break;
      addLine(entry, at, stop);
    }
    at = stop + 1;
  }
  return entry;
}

const timeAt = (raw: Buffer, start: number): string => raw.toString('latin1', start + 1, start + 1 + timeLength);

function readEntry(raw: Buffer, { start, lines }: EntryLines): Entry {
  const pieces: Buffer[] = [];
  for (let index = 0; index < lines.length; index += 2) {
    const [from, to] = [lines[index]!, lines[index + 1]!];
    if (index > 0 && isLower(raw[from]!)) pieces.push(lineBreak);
    pieces.push(raw.subarray(from + textOffset, raw[to - 1] === carriageReturn ? to - 1 : to));
  }
  const text = pieces.length === 1 ? pieces[0]!.toString() : Buffer.concat(pieces).toString();
  return {
    offset: start,
    time: timeAt(raw, start),
    kind: String.fromCharCode(raw[start]!),
    text: text.length > maxTextLength ? text.slice(0, maxTextLength) : text,
  };
}

const lineBreak = Buffer.from('\n');
