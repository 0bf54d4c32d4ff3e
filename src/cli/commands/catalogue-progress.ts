// The progress of a build: on a terminal a bar for each stream that is encoded and one for all, with the time left; elsewhere
// plain lines, few enough for a log.
import type { BuildEvent } from '../../catalogue/build.ts';
import type { Sink } from '../io.ts';

export const megabytes = (bytes: number) => `${(bytes / 1e6).toFixed(1)} MB`;

export function clock(seconds: number): string {
  const whole = Math.max(0, Math.round(seconds));
  const part = (value: number) => String(value).padStart(2, '0');
  const hours = Math.floor(whole / 3600);
  return `${hours > 0 ? `${hours}:` : ''}${part(Math.floor(whole / 60) % 60)}:${part(whole % 60)}`;
}

export function bar(share: number, width: number): string {
  const filled = Math.round(Math.min(1, Math.max(0, share)) * width);
  return '█'.repeat(filled) + '░'.repeat(width - filled);
}

interface Progress {
  report(event: BuildEvent): void;
  end(): void;
}

interface Running {
  share: number;
  startedMs: number;
}

const MOST_BARS = 8;
const LONGEST_NAME = 24;
const BAR_WIDTH = 24;
const PERCENT_WIDTH = 5;
/** Redrawn this often at most; more would only flicker. */
const REDRAW_MS = 100;
const CLEAR_BELOW = '\x1b[J';

class BuildProgress implements Progress {
  #output: Sink;
  #now: () => number;
  #startedMs = 0;
  #drawnMs = Number.NEGATIVE_INFINITY;
  /** Lines of the last drawing, which the next one goes over. */
  #drawn = 0;
  #total = 0;
  #finished = 0;
  #running = new Map<string, Running>();
  #shown = new Map<string, number>();

  constructor(output: Sink, now: () => number) {
    this.#output = output;
    this.#now = now;
  }

  report = (event: BuildEvent): void => {
    const nowMs = this.#now();
    if (event.kind === 'plan') {
      this.#total = event.encode;
      this.#startedMs = nowMs;
      if (event.encode > 0) this.#line(`${event.encode} to encode, ${event.keep} as they are`);
    } else if (event.kind === 'note') this.#line(event.text);
    else if (event.kind === 'start') this.#running.set(event.id, { share: 0, startedMs: nowMs });
    else if (event.kind === 'progress') {
      const running = this.#running.get(event.id);
      if (running !== undefined) running.share = event.share;
    } else {
      this.#running.delete(event.id);
      this.#finished++;
    }
    if (!this.#output.isTTY) this.#plain(event);
    else if (event.kind !== 'progress' || nowMs - this.#drawnMs >= REDRAW_MS) this.#draw(nowMs);
  };

  #line(text: string): void {
    this.#clear();
    this.#output.write(`${text}\n`);
  }

  /** A line when a stream starts and ends, and at every quarter between. */
  #plain(event: BuildEvent): void {
    if (event.kind === 'start') this.#line(`${event.id}: encoding`);
    if (event.kind === 'finish') this.#line(`${event.id}: ready (${this.#finished} of ${this.#total})`);
    if (event.kind === 'fail') this.#line(`${event.id}: failed (${this.#finished} of ${this.#total})`);
    if (event.kind !== 'progress') return;
    const quarter = Math.floor(event.share * 4);
    if (quarter < 1 || quarter > 3 || quarter <= (this.#shown.get(event.id) ?? 0)) return;
    this.#shown.set(event.id, quarter);
    this.#line(`${event.id}: ${quarter * 25} %`);
  }

  #draw(nowMs: number): void {
    if (this.#total === 0) return;
    const entries = [...this.#running];
    const bars = entries.slice(0, entries.length > MOST_BARS ? MOST_BARS - 1 : MOST_BARS);
    const running = entries.reduce((sum, [, { share }]) => sum + share, 0);
    const all = (this.#finished + running) / this.#total;
    const rows = bars.map(([name, { share, startedMs }]) => ({
      name,
      share,
      shown: timeLeft(share, nowMs - startedMs),
    }));
    const shown = ` ${this.#finished} of ${this.#total}${timeLeft(all, nowMs - this.#startedMs)}`;
    const lines = barLines([...rows, { name: 'all', share: all, shown }], this.#output.columns ?? 80);
    if (entries.length > bars.length) lines.splice(-1, 0, `and ${entries.length - bars.length} more`);
    const text = lines.map((line) => `${line}\n`).join('');
    this.#output.write(this.#overLast() + text);
    this.#drawn = lines.length;
    this.#drawnMs = nowMs;
  }

  /** Moves to where the last drawing began, and takes it away. */
  #overLast(): string {
    return this.#drawn === 0 ? '' : `\x1b[${this.#drawn}A\r${CLEAR_BELOW}`;
  }

  #clear(): void {
    if (this.#drawn > 0) this.#output.write(this.#overLast());
    this.#drawn = 0;
  }

  end(): void {
    this.#clear();
  }
}

interface Row {
  name: string;
  share: number;
  /** What follows the percentage. */
  shown: string;
}

/** Rows below one another, all within the terminal: its bars give way to what the rows say. */
function barLines(rows: Row[], columns: number): string[] {
  const longest = (texts: string[]) => Math.max(...texts.map(({ length }) => length));
  const nameWidth = Math.min(LONGEST_NAME, Math.floor(columns / 3), longest(rows.map(({ name }) => name)));
  const around = nameWidth + PERCENT_WIDTH + 2 + longest(rows.map(({ shown }) => shown));
  const barWidth = Math.max(1, Math.min(BAR_WIDTH, columns - 1 - around));
  return rows.map(({ name, share, shown }) => {
    const percent = `${Math.floor(share * 100)} %`.padStart(PERCENT_WIDTH);
    return `${shortened(name, nameWidth).padEnd(nameWidth)} ${bar(share, barWidth)} ${percent}${shown}`.slice(
      0,
      columns - 1,
    );
  });
}

const shortened = (name: string, width: number) => (name.length <= width ? name : `${name.slice(0, width - 1)}…`);

/** Said once there is enough behind to tell it from. */
function timeLeft(share: number, elapsedMs: number): string {
  if (share < 0.02 || elapsedMs < 2000) return '';
  return ` ${clock((elapsedMs / 1000 / share) * (1 - share))} left`;
}

export function createProgress(output: Sink, now: () => number = Date.now): Progress {
  return new BuildProgress(output, now);
}
