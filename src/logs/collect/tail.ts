// The lines of one instance on their way into the store. They gather in the last segment, which is written soon after
// something came, again as it grows, and no more once it is large.
import type { Db } from '../../db/database.ts';
import type { Clock } from '../../lib/clock.ts';
import type { IdSource } from '../../lib/ids.ts';
import { timeLength, timeMs } from '../../lib/log-lines/lines.ts';
import { type LogPosition, positionBehind, positionText } from '../../lib/log-lines/position.ts';
import type { Places } from '../store/bytes.ts';
import { compress } from '../store/compress.ts';
import { type LoggedInstance, type SegmentRow, type StreamRow, writeSegment } from '../store/segments.ts';

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

/** A segment is written when it has grown to this, whatever the time. */
const fullBytes = 1024 * 1024;
/** One that has this much when it is written gets no more. */
const largeBytes = 256 * 1024;
/** Of all tails: beyond it, what is written is not kept to be written again. */
const maxMemory = 24 * 1024 * 1024;
const leastBytes = 4096;
const newline = 0x0a;
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
  #blob: string | null = null;
  #writing: Promise<void> = Promise.resolve();

  constructor(parts: TailParts, instance: LoggedInstance, stream: StreamRow, position: LogPosition | null) {
    this.#parts = parts;
    this.#instance = instance;
    this.#stream = stream;
    this.#position = position;
  }

  get hasUnwritten(): boolean {
    return this.#unwritten > 0;
  }

  /** Resolves when there is room for more. */
  async add(lines: Buffer): Promise<void> {
    this.#position = positionBehind(this.#position, lines);
    this.#take(lines);
    if (this.#rawBytes >= fullBytes) await this.write();
  }

  /**
   * Times of an instance only rise from line to line, so that its lines are in order by time too. They are compared as
   * bytes: a string for each line would be most of what a flood costs.
   */
  #take(lines: Buffer): void {
    const latest = Buffer.from(this.#stream.latest.padEnd(timeLength, ' '), 'latin1');
    for (let start = 0; start < lines.length; start = lines.indexOf(newline, start) + 1) {
      const from = start + 1;
      const to = from + timeLength;
      if (lines.compare(latest, 0, timeLength, from, to) < 0) latest.copy(lines, from);
      else lines.copy(latest, 0, from, to);
      this.#lines++;
    }
    this.#stream = { ...this.#stream, latest: latest.toString('latin1') };
    this.#append(lines);
    this.#unwritten += lines.length;
    this.#parts.memory.bytes += lines.length;
  }

  #append(lines: Buffer): void {
    const needed = this.#rawBytes + lines.length;
    if (needed > this.#buffer.length) {
      const larger = Buffer.allocUnsafeSlow(Math.max(needed, 2 * this.#buffer.length, leastBytes));
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
    const { db, places } = this.#parts;
    const { key } = this.#instance;
    const raw = this.#buffer.subarray(0, this.#rawBytes);
    const [lines, unwritten] = [this.#lines, this.#unwritten];
    const isLast = raw.length >= largeBytes || this.#parts.memory.bytes > maxMemory;
    const stream = this.#streamNow(isLast);
    const bytes = await compress(raw);
    const segment = this.#segmentOf(raw, lines, stream, bytes.length);
    const store = places.of(places.here)!;
    await store.save(key, segment.blob, bytes);
    await writeSegment(db, stream, this.#stream.version, segment);
    this.#stream = { ...stream, latest: this.#stream.latest, version: this.#stream.version + 1 };
    this.#unwritten -= unwritten;
    this.#parts.onStored(bytes.length);
    if (this.#blob !== null) await store.delete(key, [this.#blob]).catch(() => {}); // else the sweep does
    this.#blob = isLast ? null : segment.blob;
    if (isLast) this.#drop(raw.length, lines);
  }

  /** `isLast`: the segment gets no more. */
  #streamNow(isLast: boolean): StreamRow {
    return {
      ...this.#stream,
      position: this.#position && positionText(this.#position),
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
    // Of a program that prints a lot the memory is used again.
    if (bytes >= fullBytes) rest.copy(this.#buffer);
    else this.#buffer = Buffer.from(rest);
    this.#lines -= lines;
    this.#parts.memory.bytes -= bytes;
  }

  /** Lets go of what it holds in memory. */
  forget(): void {
    this.#parts.memory.bytes -= this.#rawBytes;
    this.#buffer = emptyBuffer;
    this.#rawBytes = 0;
    this.#lines = 0;
    this.#unwritten = 0;
  }
}
