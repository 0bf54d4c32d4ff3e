// Where a reader of a log is, and how one that was interrupted goes on: with every line, and none twice.
import { encodeLine, kindOf, newline, type TimedLine, timeLength, timeMs, timeText } from './lines.ts';

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
