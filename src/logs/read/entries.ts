// What is one entry of a log: a line and those that continue it. A line continues the one before of its stream if it is the
// rest of a line that was too long, or looks like part of a stack trace.
import { newline, textOffset, timeLength } from '../../lib/log-lines.ts';

export interface Entry {
  /** Where it begins in its segment, which never changes: with instance and segment it names the entry. */
  offset: number;
  time: string;
  /** As in lib/log-lines/. */
  kind: string;
  text: string;
}

const carriageReturn = 0x0d;
const maxLines = 500;
export const maxTextLength = 20_000;
const beginnings = ['at ', 'Caused by', 'Suppressed: '].map((text) => Buffer.from(text));

/** An entry as the places of its lines. */
export interface EntryLines {
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
export function groupEntries(raw: Buffer): EntryLines[] {
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
export function entryAround(raw: Buffer, start: number): EntryLines {
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

export const timeAt = (raw: Buffer, start: number): string => raw.toString('latin1', start + 1, start + 1 + timeLength);

export function readEntry(raw: Buffer, { start, lines }: EntryLines): Entry {
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
