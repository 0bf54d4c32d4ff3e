// A page of the log of an environment, and how its entries and their positions are spelled in the API. The entries of all
// segments are in one order: by time, then instance, then place.
// Segments are scanned a few at a time, in the order of their times, until the page is full and no other segment can hold
// anything that comes before its end.

import type { LogEntry } from '../../contract/logs.ts';
import { revisionId } from '../../contract/references.ts';
import type { Db } from '../../db/database.ts';
import { type EnvironmentKey, keyOf } from '../../environments/environment-key.ts';
import { isoTime, isoTimeOrNull } from '../../lib/iso-time.ts';
import { streamOf, timeMs, timeText } from '../../lib/log-lines.ts';
import type { Places } from '../store/segment-bytes.ts';
import { bitsOf, filterOf, mayContain } from '../store/segment-encoding.ts';
import { findSegment, listSegments, type SegmentFilter, type SegmentRow } from '../store/segments.ts';
import { maxPageCharacters, type Order, type ScanQuery } from './scan.ts';
import type { ReadEntry } from './scan-worker.ts';
import type { Scanners } from './scanners.ts';

export interface ReadParts {
  db: Db;
  places: Places;
  scanners: Scanners;
}

/** Later than anything. */
export const endOfTimeMs = Date.UTC(9999, 11, 31);

export interface PageQuery extends SegmentFilter {
  /** Whose share of the threads it takes. */
  accountId: string;
  kind: string | null;
  search: string | null;
  order: Order;
  limit: number;
  /** Only entries that come after this one in the order. */
  after: EntryPlace | null;
}

/** Which entry it is. */
interface EntryPlace {
  time: string;
  instance: string;
  seq: number;
  offset: number;
}

export type PlacedEntry = ReadEntry & EntryPlace & { revision: number };

/** A search that takes longer gives what it has found so far. */
const maxMs = 5000;
const mostAtOnce = 16;

export interface LogPage {
  entries: PlacedEntry[];
  /** Where a search that took too long, or a page that became too large, has come to: the next page goes on from there. */
  stoppedAt: EntryPlace | null;
}

export async function readPage(parts: ReadParts, key: EnvironmentKey, query: PageQuery): Promise<LogPage> {
  const segments = await segmentsFor(parts.db, key, query);
  const compare = query.order === 'newest' ? (a: EntryPlace, b: EntryPlace) => -comparePlaces(a, b) : comparePlaces;
  const until = performance.now() + maxMs;
  let entries: PlacedEntry[] = [];
  // The page is full soon, or a search finds little and has a long way to go: then the threads should not wait for each other.
  let atOnce = (query.search === null ? 2 : 4) * parts.scanners.size;
  for (let next = 0; next < segments.length; atOnce = Math.min(2 * atOnce, mostAtOnce)) {
    const edge = entries.length < query.limit && !isLarge(entries) ? null : entries.at(-1)!;
    if (edge && isBehind(segments[next]!, edge, query.order)) break;
    if (performance.now() > until) return { entries, stoppedAt: edgeOf(segments[next]!, query.order) };
    const round = segments.slice(next, next + atOnce);
    next += round.length;
    const wanted = edge ? { ...query, ...upTo(edge, query.order) } : query;
    const found = await Promise.all(round.map((segment) => scanSegment(parts, segment, wanted)));
    entries = thatFit([...entries, ...found.flat()].sort(compare)).slice(0, query.limit);
  }
  return { entries, stoppedAt: isLarge(entries) ? entries.at(-1)! : null };
}

/** The first of them, up to the one with which the page is large enough. */
function thatFit(entries: PlacedEntry[]): PlacedEntry[] {
  let characters = 0;
  const last = entries.findIndex(({ text }) => {
    characters += text.length;
    return characters >= maxPageCharacters;
  });
  return last === -1 ? entries : entries.slice(0, last + 1);
}

export const isLarge = (entries: PlacedEntry[]): boolean =>
  entries.reduce((sum, { text }) => sum + text.length, 0) >= maxPageCharacters;

async function segmentsFor(db: Db, key: EnvironmentKey, query: PageQuery): Promise<SegmentRow[]> {
  const { after, order } = query;
  const bound = after && (order === 'newest' ? { toMs: timeMs(after.time) } : { fromMs: timeMs(after.time) });
  const rows = await listSegments(db, key, { ...query, ...bound });
  return order === 'newest' ? rows : rows.sort((a, b) => a.from_at - b.from_at);
}

/** Whether nothing in the segment comes before the entry. */
const isBehind = ({ from_at, to_at }: SegmentRow, { time }: EntryPlace, order: Order): boolean =>
  order === 'newest' ? to_at < timeMs(time) : from_at > timeMs(time);

/** What comes before the last entry of a full page is all that can still belong on it. */
const upTo = ({ time }: EntryPlace, order: Order): Partial<PageQuery> =>
  order === 'newest' ? { fromMs: timeMs(time) } : { toMs: timeMs(time) };

/** A place that comes right before everything in the segment and in those that follow it in the order. */
function edgeOf({ from_at, to_at }: SegmentRow, order: Order): EntryPlace {
  return order === 'newest'
    ? { time: timeText(to_at, 999_999), instance: '~', seq: 0, offset: 0 }
    : { time: timeText(from_at), instance: '', seq: 0, offset: 0 };
}

export async function scanSegment(
  parts: ReadParts,
  segment: SegmentRow,
  query: PageQuery,
  more: Partial<ScanQuery> = {},
): Promise<PlacedEntry[]> {
  const bytes = await readBytes(parts, segment);
  if (!bytes || isWithout(bytes, query.search)) return [];
  const entries = await parts.scanners.scan(query.accountId, bytes, segment.raw_bytes, {
    ...scanQueryOf(segment, query),
    ...more,
  });
  const { instance_id: instance, seq, revision } = segment;
  return entries.map((entry) => ({ ...entry, instance, seq, revision }));
}

function isWithout(bytes: Buffer, search: string | null): boolean {
  const filter = search === null ? null : filterOf(bytes);
  return filter !== null && !mayContain(filter, bitsOf(search!));
}

const mostReads = 5;

/** A segment that grows has its bytes under another name each time. null: it was deleted for its age. */
async function readBytes({ db, places }: ReadParts, segment: SegmentRow): Promise<Buffer | null> {
  let row: SegmentRow | undefined = segment;
  for (let reads = 0; row && reads < mostReads; reads++) {
    const bytes = await places.of(row.place)?.read(keyOf(row), row.blob);
    if (bytes) return bytes;
    const before: string = row.blob;
    row = await findSegment(db, keyOf(segment), segment.instance_id, segment.seq);
    if (row?.blob === before) return null;
  }
  return null;
}

function scanQueryOf(segment: SegmentRow, { fromMs, toMs, kind, search, order, limit, after }: PageQuery): ScanQuery {
  const times = { from: timeText(fromMs), to: timeText(toMs, 999_999) };
  return { ...times, kind, search, order, limit, beyond: after && beyondIn(segment, after, order) };
}

/** Entries of the same time as `after` are in the order of their instances and segments. */
function beyondIn(segment: SegmentRow, after: EntryPlace, order: Order): { time: string; offset: number } {
  const { instance_id: instance, seq } = segment;
  const isSame = instance === after.instance && seq === after.seq;
  if (isSame) return { time: after.time, offset: after.offset };
  const isEarlier = comparePlaces({ time: '', instance, seq, offset: 0 }, { ...after, time: '', offset: 0 }) < 0;
  const takesAll = order === 'newest' ? isEarlier : !isEarlier;
  const all = order === 'newest' ? Number.MAX_SAFE_INTEGER : -1;
  const none = order === 'newest' ? -1 : Number.MAX_SAFE_INTEGER;
  return { time: after.time, offset: takesAll ? all : none };
}

export function comparePlaces(a: EntryPlace, b: EntryPlace): number {
  if (a.time !== b.time) return a.time < b.time ? -1 : 1;
  if (a.instance !== b.instance) return a.instance < b.instance ? -1 : 1;
  return a.seq - b.seq || a.offset - b.offset;
}

const entryId = ({ instance, seq, offset }: Omit<EntryPlace, 'time'>): string => `${instance}.${seq}.${offset}`;

function parseEntryId(id: string): Omit<EntryPlace, 'time'> | null {
  const [, instance, seq, offset] = /^([A-Za-z0-9_-]{1,64})\.(\d{1,12})\.(\d{1,12})$/.exec(id) ?? [];
  return instance === undefined ? null : { instance, seq: Number(seq), offset: Number(offset) };
}

/** What a follower resumes after: the entry, and its time for those of other instances. */
export const resumeId = (entry: EntryPlace): string => `${timeMs(entry.time)}.${entryId(entry)}`;

export function parseResumeId(id: string): { atMs: number; place: Omit<EntryPlace, 'time'> } | null {
  const [, at, rest = ''] = /^(\d{1,15})\.(.+)$/.exec(id) ?? [];
  const place = parseEntryId(rest);
  return at !== undefined && place ? { atMs: Number(at), place } : null;
}

export function presentEntry(entry: PlacedEntry): LogEntry {
  const { level, message, loggedAt } = entry.fields;
  return {
    id: entryId(entry),
    at: isoTime(timeMs(entry.time)),
    instance: entry.instance,
    revision: revisionId(entry.revision),
    stream: streamOf(entry.kind),
    text: entry.text.replaceAll('\0', '�').toWellFormed(),
    level,
    message: message?.replaceAll('\0', '�').toWellFormed() ?? null,
    logged_at: isoTimeOrNull(loggedAt),
  };
}

export const placeText = ({ time, instance, seq, offset }: EntryPlace): string =>
  `${time} ${seq} ${offset} ${instance}`;

export function parsePlace(text: string): EntryPlace {
  const [time, seq, offset, instance = ''] = text.split(' ') as [string, string, string, string];
  return { time, instance, seq: Number(seq), offset: Number(offset) };
}
