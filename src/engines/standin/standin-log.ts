// What an instance of the stand-in has printed: the latest lines, each with a time of its own, by which a follower knows
// where it is.
import { once } from 'node:events';
import { encodeLine, encodeLines, type TimedLine, timeMs, timeText } from '../../lib/log-lines.ts';
import { type LogPosition, lostLine } from '../../lib/log-position.ts';
import type { LogLine } from '../engine.ts';

const linesAtOnce = 100;

export class StandinLog extends EventTarget {
  readonly #maxLines: number;
  #lines: TimedLine[] = [];
  #last = { ms: 0, nanos: 0 };
  /** Of the latest line that is not kept any more. */
  droppedAt = '';
  isClosed = false;

  constructor(maxLines: number) {
    super();
    this.#maxLines = maxLines;
  }

  add(stream: LogLine['stream'], text: string): void {
    const ms = Math.max(Date.now(), this.#last.ms);
    this.#last = { ms, nanos: ms === this.#last.ms ? this.#last.nanos + 1 : 0 };
    this.#lines.push({ time: timeText(ms, this.#last.nanos), stream, text });
    if (this.#lines.length > this.#maxLines) this.droppedAt = this.#lines.shift()!.time;
    this.dispatchEvent(new Event('more'));
  }

  /** It prints nothing more. */
  close(): void {
    this.isClosed = true;
    this.dispatchEvent(new Event('more'));
  }

  since(ms: number): LogLine[] {
    const lines = this.#lines.map(({ time, stream, text }) => ({ at: timeMs(time), stream, text }) as LogLine);
    return lines.filter(({ at }) => at > ms);
  }

  behind(time: string): TimedLine[] {
    const from = this.#lines.findIndex((line) => line.time > time);
    return from === -1 ? [] : this.#lines.slice(from, from + linesAtOnce);
  }
}

export async function* followStandin(
  log: StandinLog | undefined,
  after: LogPosition | null,
  signal: AbortSignal,
): AsyncGenerator<Buffer> {
  let time = after?.time ?? '';
  while (log && !signal.aborted) {
    const lines = log.behind(time);
    if (lines.length > 0) {
      if (log.droppedAt > time) yield encodeLine(lostLine(time || log.droppedAt, lines[0]!.time));
      time = lines.at(-1)!.time;
      yield encodeLines(lines);
    } else if (log.isClosed) return;
    else await once(log, 'more', { signal }).catch(() => {});
  }
}
