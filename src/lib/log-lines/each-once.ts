// Each line of an engine's log once, from behind a position on. Docker gives some lines a second time when the file that it
// reads is rotated. A line that is earlier than the one before of its stream, or the very same, is how that begins: from
// there on lines are taken as repeated up to the place where the log was. If that does not come, the clock was set back, and
// they are new.
import { newline, textOffset, timeLength } from './lines.ts';
import { type LogPosition, Resumption } from './position.ts';

/** The latest line of a stream, where it is, and how many have its time. */
interface Latest {
  lines: Buffer;
  start: number;
  end: number;
  count: number;
}

const nothing = Buffer.alloc(textOffset);

export class EachOnce {
  /** By the letter of the stream. */
  readonly #latest = new Map<number, Latest>();
  #search: Resumption;

  constructor(position: LogPosition | null) {
    this.#search = new Resumption(position);
    if (!position) return;
    const { kind, time, count } = position;
    const line = Buffer.from(`${kind}${time} `);
    this.#latest.set(streamAt(line, 0), { lines: line, start: 0, end: line.length, count });
  }

  /** Whether lines wait until the position is found. */
  get holdsBack(): boolean {
    return this.#search.holdsBack;
  }

  /** What is new of these lines; null: nothing yet. */
  take(lines: Buffer): Buffer | null {
    const search = this.#search;
    if (search.state !== 'searching') return this.#withoutRepeated(lines);
    const fresh = search.take(lines);
    if (this.#search.state === 'lost') this.#latest.clear();
    return fresh && this.#withoutRepeated(fresh);
  }

  /** Nothing more comes, or not for a while: what was held back is new. */
  giveUp(): Buffer | null {
    const held = this.#search.giveUp();
    if (!held) return null;
    this.#latest.clear();
    return this.#withoutRepeated(held);
  }

  #withoutRepeated(lines: Buffer): Buffer | null {
    const end = this.#advance(lines);
    if (end === lines.length) return lines;
    const stream = streamAt(lines, end);
    const latest = this.#latestOf(stream);
    const time = latest.lines.toString('latin1', latest.start + 1, latest.start + 1 + timeLength);
    const position = { time, kind: String.fromCharCode(stream), count: latest.count };
    this.#search = new Resumption(position, { isRepeat: true });
    const rest = this.take(lines.subarray(end));
    return rest ? Buffer.concat([lines.subarray(0, end), rest]) : lines.subarray(0, end);
  }

  /** Where the first line begins that is earlier than one before of its stream, or the same. */
  #advance(lines: Buffer): number {
    let start = 0;
    while (start < lines.length) {
      const end = lines.indexOf(newline, start) + 1;
      const latest = this.#latestOf(streamAt(lines, start));
      const difference = compareTimes(lines, start, latest);
      if (difference < 0 || (difference === 0 && isSame(lines, start, end, latest))) break;
      latest.count = difference === 0 ? latest.count + 1 : 1;
      latest.lines = lines;
      latest.start = start;
      latest.end = end;
      start = end;
    }
    for (const latest of this.#latest.values()) if (latest.lines === lines) keep(latest);
    return start;
  }

  #latestOf(stream: number): Latest {
    const known = this.#latest.get(stream);
    if (known) return known;
    const none = { lines: nothing, start: 0, end: nothing.length, count: 0 };
    this.#latest.set(stream, none);
    return none;
  }
}

/** A copy: the memory of the lines is used again. */
function keep(latest: Latest): void {
  latest.lines = Buffer.from(latest.lines.subarray(latest.start, latest.end));
  latest.start = 0;
  latest.end = latest.lines.length;
}

const streamAt = (lines: Buffer, start: number): number => lines[start]! | 0x20;

function compareTimes(lines: Buffer, start: number, latest: Latest): number {
  for (let index = 1; index <= timeLength; index++) {
    const difference = lines[start + index]! - latest.lines[latest.start + index]!;
    if (difference !== 0) return difference;
  }
  return 0;
}

/** Pieces of a long line have one time, and may well be the same. */
const isSame = (lines: Buffer, start: number, end: number, latest: Latest): boolean =>
  lines[start] === streamAt(lines, start) && lines.compare(latest.lines, latest.start, latest.end, start, end) === 0;
