// The frames of a container's log as the API sends them: the number of a stream, a length, and text that starts with a
// timestamp. Docker splits a line longer than 16 KiB into several frames, each with a timestamp; only the last ends the
// line. No I/O.
import { kindOf, maxPieceBytes, timeLength, timeText } from '../../lib/log-lines.ts';
import { EngineError, type LogLine } from '../engine.ts';

const headerLength = 8;
/** Docker's own are a little over 16 KiB. */
const maxFrameBytes = 1024 * 1024;
const newline = 0x0a;
const zulu = 'Z'.charCodeAt(0);
const space = ' '.charCodeAt(0);

/** Turns frames into lines of lib/log-lines/. Nearly every frame is one whole line, which is copied as it is. */
export class FrameLines {
  /** By stream: the time of a line that has begun. */
  readonly #open: Record<string, string | undefined> = {};
  #rest: Buffer = Buffer.alloc(0);

  /** The lines that this chunk completes, in its own memory: without their headers they take less. */
  add(chunk: Buffer): Buffer {
    const data = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    const out: Buffer[] = [];
    const run = { start: 0, end: 0 };
    let at = 0;
    while (data.length - at >= headerLength) {
      const length = data.readUInt32BE(at + 4);
      if (length > maxFrameBytes) throw new EngineError('unavailable', `Docker sent ${length} bytes of log at once`);
      const end = at + headerLength + length;
      if (end > data.length) break;
      this.#frame(data, at, end, run, out);
      at = end;
    }
    this.#rest = Buffer.from(data.subarray(at));
    out.push(data.subarray(run.start, run.end));
    return out.length === 1 ? out[0]! : Buffer.concat(out);
  }

  /** `run`: the whole lines that have come since the last piece of one. */
  #frame(data: Buffer, at: number, end: number, run: { start: number; end: number }, out: Buffer[]): void {
    const kind = data[at] === 2 ? kindOf.stderr : kindOf.stdout;
    const from = at + headerLength;
    const isPlain =
      data[from + timeLength - 1] === zulu &&
      data[from + timeLength] === space &&
      end - from <= maxPieceBytes &&
      data.indexOf(newline, from) === end - 1;
    if (isPlain && !this.#open[kind]) {
      data[from - 1] = kind.charCodeAt(0);
      data.copyWithin(run.end, from - 1, end);
      run.end += end - from + 1;
      return;
    }
    out.push(data.subarray(run.start, run.end));
    run.start = run.end;
    for (let start = from; start < end; ) {
      const next = data.indexOf(newline, start);
      const stop = next === -1 || next >= end ? end : next + 1;
      this.#piece(kind, data.subarray(start, stop), out);
      start = stop;
    }
    // What was given of this frame is still in its place.
    run.start = run.end = end;
  }

  /** Docker splits a long line into several frames, each with a timestamp; only the last ends the line. */
  #piece(kind: string, piece: Buffer, out: Buffer[]): void {
    const behindTime = piece.indexOf(space) + 1;
    const isLast = piece[piece.length - 1] === newline;
    const text = piece.subarray(behindTime, isLast ? piece.length - 1 : piece.length);
    // Pieces of a line are given as soon as they come, so that a line of any length takes no memory.
    for (let at = 0; at < Math.max(text.length, 1); at += maxPieceBytes) {
      const begun = this.#open[kind];
      const time = begun ?? normalTime(piece.toString('latin1', 0, Math.max(behindTime - 1, 0)));
      const part = text.subarray(at, at + maxPieceBytes);
      const letter = begun ? kind.toUpperCase() : kind;
      if (part.length > 0 || !begun) out.push(Buffer.from(`${letter}${time} `), part, Buffer.from('\n'));
      this.#open[kind] = time;
    }
    if (isLast) this.#open[kind] = undefined;
  }
}

/** As Docker writes it; Podman writes the time of its host's zone, and leaves zeros out. */
function normalTime(text: string): string {
  const [, seconds, fraction = '', zone = 'Z'] = /^(.{19})(?:\.(\d{1,9}))?(Z|[+-]\d\d:\d\d)?$/.exec(text) ?? [];
  const ms = Date.parse(`${seconds}${zone}`);
  if (seconds === undefined || Number.isNaN(ms)) return timeText(Date.now());
  return `${new Date(ms).toISOString().slice(0, 19)}.${fraction.padEnd(9, '0')}Z`;
}

/** The lines of complete frames, for people to read. */
export function readLogFrames(data: Buffer): LogLine[] {
  const lines: LogLine[] = [];
  const open: Partial<Record<LogLine['stream'], LogLine>> = {};
  for (let at = 0; at + headerLength <= data.length; ) {
    const stream = data[at] === 2 ? 'stderr' : 'stdout';
    const end = at + headerLength + data.readUInt32BE(at + 4);
    const pieces = data.toString('utf8', at + headerLength, end).split(/(?<=\n)/);
    for (const piece of pieces) {
      const { time, text } = splitTime(piece);
      const begun = open[stream];
      if (begun) begun.text += text;
      const line = begun ?? { at: time, stream, text };
      if (!begun) lines.push(line);
      open[stream] = piece.endsWith('\n') ? undefined : line;
    }
    at = end;
  }
  return lines;
}

function splitTime(piece: string): { time: number; text: string } {
  const space = piece.indexOf(' ');
  const text = piece.slice(space + 1).replace(/\r?\n$/, '');
  // Docker writes nanoseconds; Date.parse is only sure to read milliseconds.
  return { time: Date.parse(piece.slice(0, Math.max(space, 0)).replace(/(\.\d{3})\d+/, '$1')), text };
}

/** Keeps the latest frames that fit: Docker sends as many lines as one asks for, oldest first and of any length. */
export class LatestFrames {
  readonly #maxBytes: number;
  readonly #frames: Buffer[] = [];
  #keptBytes = 0;
  /** The beginning of a frame that has not arrived completely. */
  #rest = Buffer.alloc(0);

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  add(chunk: Buffer): void {
    let data = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    while (data.length >= headerLength) {
      const length = headerLength + data.readUInt32BE(4);
      if (length > maxFrameBytes) throw new EngineError('unavailable', `Docker sent ${length} bytes of log at once`);
      if (data.length < length) break;
      this.#keep(data.subarray(0, length));
      data = data.subarray(length);
    }
    this.#rest = Buffer.from(data);
  }

  #keep(frame: Buffer): void {
    this.#frames.push(frame);
    this.#keptBytes += frame.length;
    while (this.#keptBytes > this.#maxBytes && this.#frames.length > 1) this.#keptBytes -= this.#frames.shift()!.length;
  }

  bytes(): Buffer {
    return Buffer.concat(this.#frames);
  }
}
