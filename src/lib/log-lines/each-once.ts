// Each line of an engine's log once, from behind a position on. Docker gives some lines a second time when the file that it
// reads is rotated. A line that is earlier than the one before of its stream is how that begins: from there on lines are
// taken as repeated up to the place where the log was. If that does not come, the clock was set back, and they are new.
import { timeLength } from './lines.ts';
import { type LogPosition, Resumption } from './position.ts';

const newline = 0x0a;

/** The time of the latest line of a stream, and how many lines have it. */
interface Latest {
  time: Buffer;
  count: number;
}

export class EachOnce {
  /** By the letter of the stream. */
  readonly #latest = new Map<number, Latest>();
  #search: Resumption;

  constructor(position: LogPosition | null) {
    this.#search = new Resumption(position);
  }

  get isSearching(): boolean {
    return this.#search.state === 'searching';
  }

  /** What is new of these lines; null: nothing yet. */
  take(lines: Buffer): Buffer | null {
    if (!this.isSearching) return this.#withoutRepeated(lines);
    const fresh = this.#search.take(lines);
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
    const { time, count } = this.#latestOf(stream);
    const position = { time: time.toString('latin1'), kind: String.fromCharCode(stream), count };
    this.#search = new Resumption(position, { isRepeat: true });
    const rest = this.take(lines.subarray(end));
    return rest ? Buffer.concat([lines.subarray(0, end), rest]) : lines.subarray(0, end);
  }

  /** Where the first line begins that is earlier than one before of its stream. */
  #advance(lines: Buffer): number {
    for (let start = 0; start < lines.length; start = lines.indexOf(newline, start) + 1) {
      const latest = this.#latestOf(streamAt(lines, start));
      const difference = compareTimes(lines, start + 1, latest.time);
      if (difference < 0) return start;
      if (difference > 0) {
        lines.copy(latest.time, 0, start + 1, start + 1 + timeLength);
        latest.count = 0;
      }
      latest.count++;
    }
    return lines.length;
  }

  #latestOf(stream: number): Latest {
    const known = this.#latest.get(stream);
    if (known) return known;
    const none = { time: Buffer.alloc(timeLength), count: 0 };
    this.#latest.set(stream, none);
    return none;
  }
}

const streamAt = (lines: Buffer, start: number): number => lines[start]! | 0x20;

function compareTimes(lines: Buffer, from: number, time: Buffer): number {
  for (let index = 0; index < timeLength; index++) {
    const difference = lines[from + index]! - time[index]!;
    if (difference !== 0) return difference;
  }
  return 0;
}
