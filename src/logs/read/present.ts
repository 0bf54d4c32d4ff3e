import type { LogEntry } from '../../contract/logs/entry.ts';
import { revisionId } from '../../contract/revision-id.ts';
import { isoTime, isoTimeOrNull } from '../../lib/iso-time.ts';
import { streamOf, timeMs } from '../../lib/log-lines.ts';
import { readJsonLine } from './json-line.ts';
import type { EntryPlace, PlacedEntry } from './page.ts';

export const entryId = ({ instance, seq, offset }: Omit<EntryPlace, 'time'>): string => `${instance}.${seq}.${offset}`;

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
  const { level, message, loggedAt } = readJsonLine(entry.text);
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
