// The progress of a build: on a terminal one line that is redrawn, with the time left; elsewhere plain lines, few enough
// for a log.
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

class BuildProgress implements Progress {
  #output: Sink;
  #now: () => number;
  #startedMs: number;
  #total = 0;
  #finished = 0;
  #shares = new Map<string, number>();
  #shown = new Map<string, number>();

  constructor(output: Sink, now: () => number) {
    this.#output = output;
    this.#now = now;
    this.#startedMs = now();
  }

  report = (event: BuildEvent): void => {
    if (event.kind === 'plan') {
      this.#total = event.encode;
      if (event.encode > 0) this.#line(`${event.encode} to encode, ${event.keep} as they are`);
    } else if (event.kind === 'note') this.#line(event.text);
    else if (event.kind === 'progress') this.#shares.set(event.id, event.share);
    else if (event.kind === 'start') this.#shares.set(event.id, 0);
    else if (event.kind === 'finish' || event.kind === 'fail') {
      this.#shares.delete(event.id);
      this.#finished++;
    }
    if (this.#output.isTTY) this.#draw();
    else this.#plain(event);
  };

  #line(text: string): void {
    this.#output.write(this.#output.isTTY ? `\r\x1b[K${text}\n` : `${text}\n`);
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

  #draw(): void {
    if (this.#total === 0) return;
    const running = [...this.#shares.values()].reduce((sum, share) => sum + share, 0);
    const share = (this.#finished + running) / this.#total;
    const passed = (this.#now() - this.#startedMs) / 1000;
    const left = share > 0.01 ? ` ${clock((passed / share) * (1 - share))} left` : '';
    const names = [...this.#shares.keys()].join(', ');
    const head = `${bar(share, 24)} ${String(Math.floor(share * 100)).padStart(3)} %${left}  `;
    const room = Math.max(0, (this.#output.columns ?? 80) - head.length - 1);
    this.#output.write(`\r\x1b[K${head}${names.slice(0, room)}`);
  }

  end(): void {
    if (this.#output.isTTY) this.#output.write('\r\x1b[K');
  }
}

export function createProgress(output: Sink, now: () => number = Date.now): Progress {
  return new BuildProgress(output, now);
}
