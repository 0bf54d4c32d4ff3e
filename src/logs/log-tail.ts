// The lines of one instance on their way into the store. They gather in the last segment, which is written soon after the
// first line came and again as it grows. Once it is large it is written for the last time, and the next segment begins.
import type { Db } from '../db/database.ts';
import type { Clock } from '../lib/clock.ts';
import type { IdSource } from '../lib/ids.ts';
import { newline, timeLength, timeMs } from '../lib/log-lines.ts';
import { type LogPosition, positionBehind, positionText } from '../lib/log-position.ts';
import type { Places } from './store/segment-bytes.ts';
import { compress } from './store/segment-encoding.ts';
import { type LoggedInstance, type SegmentRow, type StreamRow, writeSegment } from './store/segments.ts';

export interface TailParts {
  db: Db;
  clock: Clock;
  ids: IdSource;
  places: Places;
  /** What all tails hold in memory. */
  memory: { bytes: number };
  /** So many compressed bytes were stored. */
  onStored(bytes: number): void;
}

/**
 * A segment is written when it has grown to this, whatever the time. While it is, as much again may come. One of this size
 * gets no filter: making one takes longer than all else that is done for a line.
 */
const fullBytes = 2 * 1024 * 1024;
/** One that has this much when it is written gets no more. */
const largeBytes = 256 * 1024;
/** Of all tails: beyond it, segments are full when they are large, and get no more once they are written. */
const maxMemory = 24 * 1024 * 1024;
const leastBytes = 4096;
const mostGrowth = 1024 * 1024;
const emptyBuffer = Buffer.alloc(0);

export class Tail {
  readonly #parts: TailParts;
  readonly #instance: LoggedInstance;
  #stream: StreamRow;
  #position: LogPosition | null;
  /** What the last segment holds, at its beginning: a copy, because chunks may be small parts of large memory. */
  #buffer = emptyBuffer;
  #rawBytes = 0;
  #lines = 0;
  #unwritten = 0;
  /** The latest time so far. */
  readonly #latest: Buffer;
  /** How much of the buffer is being written and then gone. */
  #leaving = 0;
  #fullWrite: Promise<void> = Promise.resolve();
  #blob: string | null = null;
  #writing: Promise<void> = Promise.resolve();

  constructor(parts: TailParts, instance: LoggedInstance, stream: StreamRow, position: LogPosition | null) {
    this.#parts = parts;
    this.#instance = instance;
    this.#stream = stream;
    this.#position = position;
    this.#latest = Buffer.from(stream.latest.padEnd(timeLength, ' '), 'latin1');
  }

  /** Resolves when there is room for more. Takes a copy, and changes times. */
  async add(lines: Buffer): Promise<void> {
    this.#position = positionBehind(this.#position, lines);
    this.#lines += raiseTimes(lines, this.#latest);
    this.#append(lines);
    this.#unwritten += lines.length;
    this.#parts.memory.bytes += lines.length;
    const isFull = this.#rawBytes - this.#leaving >= (this.#isMemoryShort() ? largeBytes : fullBytes);
    if (!isFull) return;
    await this.#fullWrite;
    this.#fullWrite = this.write();
    this.#fullWrite.catch(() => {}); // the next call that waits for it gets the error
  }

  #isMemoryShort(): boolean {
    return this.#parts.memory.bytes > maxMemory;
  }

  #append(lines: Buffer): void {
    const needed = this.#rawBytes + lines.length;
    if (needed > this.#buffer.length) {
      const grown = this.#buffer.length + Math.min(this.#buffer.length, mostGrowth);
      const larger = Buffer.allocUnsafeSlow(Math.max(needed, grown, leastBytes));
      this.#buffer.copy(larger, 0, 0, this.#rawBytes);
      this.#buffer = larger;
    }
    lines.copy(this.#buffer, this.#rawBytes);
    this.#rawBytes = needed;
  }

  /** Throws ChangedMeanwhile where another process collects the log by now. */
  write(): Promise<void> {
    const writing = this.#writing.catch(() => {}).then(() => this.#write());
    this.#writing = writing;
    return writing;
  }

  /** What comes while it writes waits for the next time. */
  async #write(): Promise<void> {
    if (this.#unwritten === 0) return;
    const raw = this.#buffer.subarray(0, this.#rawBytes);
    const [lines, unwritten] = [this.#lines, this.#unwritten];
    const isLast = raw.length >= largeBytes || this.#isMemoryShort();
    const stream = this.#streamNow(isLast);
    if (isLast) this.#leaving = raw.length;
    try {
      await this.#save(raw, lines, stream, isLast);
      this.#unwritten -= unwritten;
      if (isLast) this.#drop(raw.length, lines);
      else this.#shrink();
    } finally {
      this.#leaving = 0;
    }
  }

  async #save(raw: Buffer, lines: number, stream: StreamRow, isLast: boolean): Promise<void> {
    const { db, places, onStored } = this.#parts;
    const { key } = this.#instance;
    const bytes = await compress(raw, isLast && raw.length < fullBytes);
    const segment = this.#segmentOf(raw, lines, stream, bytes.length);
    const store = places.of(places.here)!;
    await store.save(key, segment.blob, bytes);
    await writeSegment(db, stream, this.#stream.version, segment);
    this.#stream = { ...stream, version: this.#stream.version + 1 };
    onStored(bytes.length);
    if (this.#blob !== null) await store.delete(key, [this.#blob]).catch(() => {}); // else the sweep does
    this.#blob = isLast ? null : segment.blob;
  }

  /** `isLast`: the segment gets no more. */
  #streamNow(isLast: boolean): StreamRow {
    return {
      ...this.#stream,
      position: this.#position && positionText(this.#position),
      latest: this.#latest.toString('latin1'),
      seq: isLast ? this.#stream.seq + 1 : this.#stream.seq,
      updated_at: this.#parts.clock.now(),
    };
  }

  #segmentOf(raw: Buffer, lines: number, { latest, updated_at }: StreamRow, bytes: number): SegmentRow {
    const { key, id, revision } = this.#instance;
    return {
      instance_id: id,
      seq: this.#stream.seq,
      project_id: key.projectId,
      environment: key.environment,
      revision,
      from_at: timeMs(raw.toString('latin1', 1, 1 + timeLength)),
      to_at: timeMs(latest),
      lines,
      raw_bytes: raw.length,
      bytes,
      place: this.#parts.places.here,
      blob: this.#parts.ids('blob'),
      updated_at,
    };
  }

  #drop(bytes: number, lines: number): void {
    this.#rawBytes -= bytes;
    const rest = this.#buffer.subarray(bytes, bytes + this.#rawBytes);
    // The buffer of a program that prints a lot is reused.
    if (bytes >= fullBytes / 2) rest.copy(this.#buffer);
    else this.#buffer = Buffer.from(rest);
    this.#lines -= lines;
    this.#parts.memory.bytes -= bytes;
  }

  /** Frees the large buffer of a program that no longer prints a lot. */
  #shrink(): void {
    if (this.#buffer.length >= fullBytes) this.#buffer = Buffer.from(this.#buffer.subarray(0, this.#rawBytes));
  }

  /** Frees what it holds in memory, once nothing of it is being written. */
  async forget(): Promise<void> {
    await this.#writing.catch(() => {});
    this.#parts.memory.bytes -= this.#rawBytes;
    this.#buffer = emptyBuffer;
    this.#rawBytes = 0;
    this.#lines = 0;
    this.#unwritten = 0;
  }
}

/**
 * Times of an instance only rise from line to line, so that its lines are in order by time too: earlier ones become
 * `latest`, which is the latest from then on. Gives the number of lines. Nothing is made for a line, not even a string,
 * because there may be a million of them in a second.
 */
export function raiseTimes(lines: Buffer, latest: Buffer): number {
  let [before, at] = [latest, 0];
  let count = 0;
  for (let start = 0; start < lines.length; start = lines.indexOf(newline, start) + 1) {
    if (isEarlier(lines, start + 1, before, at)) before.copy(lines, start + 1, at, at + timeLength);
    [before, at] = [lines, start + 1];
    count++;
  }
  before.copy(latest, 0, at, at + timeLength);
  return count;
}

function isEarlier(time: Buffer, from: number, before: Buffer, at: number): boolean {
  for (let index = 0; index < timeLength; index++) {
    const difference = time[from + index]! - before[at + index]!;
    if (difference !== 0) return difference < 0;
  }
  return false;
}
