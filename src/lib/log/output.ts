// Standard output for the log. On a busy service a write for every line costs more than the line, so the lines of a few
// milliseconds are written together.
import { destination } from 'pino';

const gatherMs = 5;
/** For how long an end of the process waits for those who read the log. */
const flushLimitMs = 1000;

export interface LogOutput {
  write(line: string): void;
  /** Calls back when every line has been written. pino's `log.flush` calls this. */
  flush(done: () => void): void;
}

class StandardOutput implements LogOutput {
  readonly #stdout = destination({ dest: 1, sync: false });
  #lines: string[] = [];

  constructor() {
    process.once('exit', () => this.#writeRest());
  }

  write(line: string): void {
    if (this.#lines.push(line) === 1) setTimeout(() => this.#stdout.write(this.#take()), gatherMs).unref();
  }

  flush(done: () => void): void {
    const finish = () => {
      clearTimeout(limit);
      this.#stdout.off('drain', finish);
      done();
    };
    const limit = setTimeout(finish, flushLimitMs);
    this.#stdout.once('drain', finish);
    this.#stdout.write(this.#take());
  }

  #take(): string {
    const text = this.#lines.join('');
    this.#lines = [];
    return text;
  }

  /** For an end without `flush`. What is being written at that moment may be cut off. */
  #writeRest(): void {
    this.#stdout.flushSync();
    if (this.#lines.length > 0) destination({ dest: 1, sync: true }).write(this.#take());
  }
}

let output: StandardOutput | undefined;

/** The same for every log of this process. */
export function logOutput(): LogOutput {
  output ??= new StandardOutput();
  return output;
}
