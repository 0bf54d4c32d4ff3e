// Structured logs: JSON lines, or short lines on a terminal. Fields whose names suggest a secret are redacted at any depth,
// and query strings are never logged.
import { destination, type Logger, pino, stdSerializers } from 'pino';
import { prettyLine } from './pretty-log-line.ts';

export type Log = Logger;

interface LogOptions {
  level: string;
  format: 'json' | 'pretty';
}

const secretNames = new Set(['authorization', 'token', 'secret', 'password', 'variables', 'cookie']);
const maxDepth = 8;

/**
 * A copy of the value with secrets redacted. pino can redact a list of paths, but for one line of the access log that
 * takes longer than the request itself.
 */
export function withoutSecrets<T>(value: T, depth = 0): T {
  if (typeof value !== 'object' || value === null || value instanceof Error) return value;
  if (depth > maxDepth) return '[too deep]' as T;
  let copy: Record<string, unknown> | unknown[] | undefined;
  for (const name in value) {
    const item = value[name];
    const shown = secretNames.has(name)
      ? '[redacted]'
      : typeof item === 'object'
        ? withoutSecrets(item, depth + 1)
        : item;
    if (shown === item) continue;
    copy ??= (Array.isArray(value) ? [...value] : { ...value }) as Record<string, unknown>;
    (copy as Record<string, unknown>)[name] = shown;
  }
  return (copy ?? value) as T;
}

let stamp = { ms: 0, text: '' };

/** Formats the time once per millisecond. */
function timestamp(): string {
  const ms = Date.now();
  if (stamp.ms !== ms) stamp = { ms, text: `,"time":"${new Date(ms).toISOString()}"` };
  return stamp.text;
}

export function createLog({ level, format }: LogOptions): Log {
  return pino(
    {
      level,
      base: null,
      timestamp,
      formatters: { level: (label) => ({ level: label }), log: (fields) => withoutSecrets(fields) },
      serializers: { err: (error) => withoutSecrets(stdSerializers.err(error)) },
    },
    format === 'json' ? logOutput() : prettyStream(logOutput()),
  );
}

const prettyStream = (output: LogOutput): LogOutput => ({
  write: (line) => output.write(`${prettyLine(JSON.parse(line))}\n`),
  flush: (done) => output.flush(done),
});

// On a busy service one write per line costs more than making the line, so the lines of a few milliseconds are written
// together.

const gatherMs = 5;
/** For how long an end of the process waits for those who read the log. */
const flushLimitMs = 1000;

interface LogOutput {
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
function logOutput(): LogOutput {
  output ??= new StandardOutput();
  return output;
}
