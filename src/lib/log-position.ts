// Where a reader of an engine's log is, and how it gets every line once: `Resumption` continues after an interruption,
// `RepeatFilter` also drops lines that the engine repeats.
import { encodeLine, kindOf, newline, type TimedLine, textOffset, timeLength, timeMs, timeText } from './log-lines.ts';

/** Where a reader of an engine's log is: behind the `count`th line with this time and kind. */
export interface LogPosition {
  time: string;
  kind: string;
  count: number;
}

export const positionText = ({ time, kind, count }: LogPosition): string => `${time} ${kind} ${count}`;

export function parsePosition(text: string): LogPosition {
  const [time, kind, count] = text.split(' ') as [string, string, string];
  return { time, kind, count: Number(count) };
}

const sameKind = (kind: string): string => kind.toLowerCase();

/** The position behind these lines. What the service itself said is not in the engine's log. */
export function positionBehind(before: LogPosition | null, lines: Buffer): LogPosition | null {
  let last = -1;
  let count = 0;
  for (let end = lines.length; end > 0; ) {
    const start = lines.lastIndexOf(newline, end - 2) + 1;
    end = start;
    if (kindAt(lines, start) === kindOf.system) continue;
    if (last === -1) last = start;
    else if (!isSamePlace(lines, start, last)) return { ...timeAndKind(lines, last), count };
    count++;
  }
  if (last === -1) return before;
  const found = { ...timeAndKind(lines, last), count };
  const isSame = before?.time === found.time && before.kind === found.kind;
  return isSame ? { ...found, count: count + before.count } : found;
}

const kindAt = (lines: Buffer, start: number): string => sameKind(String.fromCharCode(lines[start]!));

/** Compared as bytes, because there may be many. */
function isSamePlace(lines: Buffer, one: number, other: number): boolean {
  if (kindAt(lines, one) !== kindAt(lines, other)) return false;
  return lines.compare(lines, one + 1, one + 1 + timeLength, other + 1, other + 1 + timeLength) === 0;
}

const timeAndKind = (lines: Buffer, start: number) => ({
  time: lines.toString('latin1', start + 1, start + 1 + timeLength),
  kind: kindAt(lines, start),
});

/** Lines may be a little out of order: each stream of a program is read and given its time on its own. */
export const disorderMs = 10;
const maxHeldBytes = 4 * 1024 * 1024;

/**
 * Finds where to go on in a log that is read again from a little before a position: gives what is behind it, and where
 * the position is not found any more, because the engine has dropped the lines around it, everything.
 */
export class Resumption {
  readonly #position: LogPosition | null;
  readonly #giveUpAfter: string;
  #left: number;
  #held: Buffer[] = [];
  #heldBytes = 0;
  #state: 'searching' | 'found' | 'lost';
  readonly #isRepeat: boolean;

  /** `isRepeat`: the engine may be giving lines again that it gave just now; where it does not, none was lost. */
  constructor(position: LogPosition | null, { isRepeat = false } = {}) {
    this.#position = position;
    this.#isRepeat = isRepeat;
    this.#left = position?.count ?? 0;
    this.#giveUpAfter = position ? timeText(timeMs(position.time) + disorderMs, 999_999) : '';
    this.#state = position ? 'searching' : 'found';
  }

  get state(): 'searching' | 'found' | 'lost' {
    return this.#state;
  }

  get holdsBack(): boolean {
    return this.#heldBytes > 0 && this.#state === 'searching';
  }

  /** What is new of these lines; null: nothing yet. */
  take(lines: Buffer): Buffer | null {
    if (this.#state !== 'searching') return lines;
    for (let start = 0; start < lines.length; ) {
      const end = lines.indexOf(newline, start) + 1;
      const { time, kind } = timeAndKind(lines, start);
      if (time === this.#position!.time && kind === this.#position!.kind && --this.#left === 0) {
        this.#state = 'found';
        this.#held = [];
        return end < lines.length ? lines.subarray(end) : null;
      }
      if (time > this.#giveUpAfter) {
        this.#hold(lines);
        return this.giveUp();
      }
      start = end;
    }
    this.#hold(lines);
    return this.#heldBytes > maxHeldBytes ? this.giveUp() : null;
  }

  /** A copy, because their memory may be used again. */
  #hold(lines: Buffer): void {
    this.#held.push(Buffer.from(lines));
    this.#heldBytes += lines.length;
  }

  /** The log has been read to its end: what was held back is new. */
  giveUp(): Buffer | null {
    if (this.#state !== 'searching') return null;
    this.#state = 'lost';
    const kept = Buffer.concat(this.#held);
    this.#held = [];
    if (this.#isRepeat) return kept;
    const time = kept.length > 0 ? kept.toString('latin1', 1, 1 + timeLength) : this.#position!.time;
    return Buffer.concat([encodeLine(lostLine(this.#position!.time, time)), kept]);
  }
}

/** Stands in the log where lines are missing. */
export const lostLine = (from: string, to: string): TimedLine => ({
  time: to,
  stream: 'system',
  text: `lines were lost here: the engine kept none between ${from} and ${to} long enough`,
});

// Docker returns some lines a second time when the file it reads is rotated. A repetition begins with a line that is earlier
// than, or the same as, the previous one of its stream: from there on, lines count as repeated up to the place that was
// reached before. If that place does not come, the clock was set back and the lines are new.

/** The latest line of a stream, where it is, and how many have its time. */
interface Latest {
  lines: Buffer;
  start: number;
  end: number;
  count: number;
}

const nothing = Buffer.alloc(textOffset);

export class RepeatFilter {
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
    const rest = search.take(lines);
    if (this.#search.state === 'lost') this.#latest.clear();
    return rest && this.#withoutRepeated(rest);
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
