// The ledger: one JSON line for everything that was ever published or withdrawn, appended and never rewritten. It lies
// beside the site; the rule that an id is never reused for different content rests on it.
import { open, readFile } from 'node:fs/promises';
import { CatalogueError, codeOf } from './catalogue-error.ts';
import type { StreamFacts } from './document.ts';
import type { Rendition } from './manifest.ts';

export interface PublishedFile {
  sha256: string;
  size: number;
}

export interface PublishLine {
  type: 'publish';
  at: string;
  id: string;
  source_sha256: string;
  encoder: string;
  /** What this line added: progressive renditions, and the HLS ladder where it was made. */
  progressive: Rendition[];
  hls: Rendition[] | null;
  /** Labels in the manifest that are larger than the source. */
  left_out: string[];
  /** Captions, sound and chapters that the manifest asked for, where it did. */
  asked?: string;
  facts: StreamFacts;
  /** Path from the root of the site, without the leading slash. */
  files: Record<string, PublishedFile>;
}

interface WithdrawLine {
  type: 'withdraw';
  at: string;
  id: string;
}

/** The files of a withdrawn stream are gone too. */
interface PurgeLine {
  type: 'purge';
  at: string;
  id: string;
}

export type LedgerLine = PublishLine | WithdrawLine | PurgeLine;

/** What the ledger says of one id, all its lines taken together. */
export interface StreamRecord {
  id: string;
  sourceSha256: string;
  progressive: Map<string, Rendition>;
  hls: Rendition[] | null;
  leftOut: Set<string>;
  asked: string;
  facts: StreamFacts;
  files: Map<string, PublishedFile>;
  withdrawn: boolean;
  purged: boolean;
}

const noFacts: StreamFacts = { fps: 0, duration_s: 0, progressive: {}, hls: null, poster: '', thumbnails: '' };

/** Of an id that was withdrawn elsewhere: a ledger that was restored may know nothing else of it. */
const emptyRecord = (id: string): StreamRecord => ({
  id,
  sourceSha256: '',
  progressive: new Map(),
  hls: null,
  leftOut: new Set(),
  asked: '',
  facts: noFacts,
  files: new Map(),
  withdrawn: false,
  purged: false,
});

function merge(record: StreamRecord | undefined, line: PublishLine): StreamRecord {
  const base = record ?? { ...emptyRecord(line.id), sourceSha256: line.source_sha256, facts: line.facts };
  for (const rendition of line.progressive) base.progressive.set(rendition.label, rendition);
  for (const label of line.left_out) base.leftOut.add(label);
  for (const [path, file] of Object.entries(line.files)) base.files.set(path, file);
  return { ...base, hls: base.hls ?? line.hls, asked: line.asked ?? '', facts: line.facts };
}

export function foldLedger(lines: LedgerLine[]): Map<string, StreamRecord> {
  const records = new Map<string, StreamRecord>();
  for (const line of lines) {
    const record = records.get(line.id);
    if (line.type === 'publish') records.set(line.id, merge(record, line));
    else {
      const withdrawn = record ?? emptyRecord(line.id);
      withdrawn.withdrawn = true;
      withdrawn.purged ||= line.type === 'purge';
      records.set(line.id, withdrawn);
    }
  }
  return records;
}

function parseLine(text: string, number: number, path: string): LedgerLine {
  try {
    const line = JSON.parse(text) as LedgerLine;
    if (['publish', 'withdraw', 'purge'].includes(line.type) && typeof line.id === 'string') return line;
  } catch {
    // The error below names the line.
  }
  throw new CatalogueError(`${path}: line ${number} is damaged; restore the ledger from a copy`);
}

interface LedgerContent {
  lines: LedgerLine[];
  /** Length up to the last complete line; a crash in the middle of an append leaves part of one after it. */
  completeBytes: number;
}

export async function readLedger(path: string): Promise<LedgerContent> {
  let bytes: Buffer;
  try {
    bytes = await readFile(path);
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return { lines: [], completeBytes: 0 };
    throw error;
  }
  const completeBytes = bytes.lastIndexOf(0x0a) + 1;
  const texts = bytes.toString('utf8', 0, completeBytes).split('\n').slice(0, -1);
  return { lines: texts.map((text, i) => parseLine(text, i + 1, path)), completeBytes };
}

/** Appends after the last complete line, and returns when the lines are on the disk; a failed append leaves no trace. */
export async function appendLedger(path: string, completeBytes: number, lines: LedgerLine[]): Promise<number> {
  if (lines.length === 0) return completeBytes;
  const bytes = Buffer.from(lines.map((line) => `${JSON.stringify(line)}\n`).join(''));
  const file = await open(path, completeBytes === 0 ? 'w' : 'r+');
  try {
    await file.truncate(completeBytes);
    try {
      for (let written = 0; written < bytes.length; ) {
        const { bytesWritten } = await file.write(bytes, written, bytes.length - written, completeBytes + written);
        written += bytesWritten;
      }
      await file.sync();
    } catch (error) {
      await file.truncate(completeBytes);
      throw error;
    }
  } finally {
    await file.close();
  }
  return completeBytes + bytes.length;
}
