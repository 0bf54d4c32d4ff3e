// Also sends what instances print to one receiver, by syslog or OTLP. Lines wait in a queue of bounded size. While the
// receiver is away or slow, lines that do not fit are dropped, counted and logged: collecting and storing never wait for it.
import { setTimeout as pause } from 'node:timers/promises';
import type { Log } from '../lib/log.ts';
import { newline, streamOf, textOffset, timeLength } from '../lib/log-lines.ts';
import { type LogLevel, readLineFields } from './read/line-fields.ts';
import type { LoggedInstance } from './store/segments.ts';

export interface Receiver {
  name: 'syslog' | 'otlp';
  /** Rejects where it may succeed later. */
  send(lines: ShippedLine[]): Promise<void>;
  close(): void;
}

interface Waiting {
  instance: LoggedInstance;
  lines: Buffer;
}

const maxWaitingBytes = 8 * 1024 * 1024;
const maxBatchBytes = 256 * 1024;
const firstRetryMs = 500;
const longestRetryMs = 30_000;
const logEveryMs = 60_000;

const countLines = (lines: Buffer): number => {
  let count = 0;
  for (let at = lines.indexOf(newline); at !== -1; at = lines.indexOf(newline, at + 1)) count++;
  return count;
};

export class Shipper {
  readonly receiver: Receiver;
  readonly #log: Log;
  readonly #queue: Waiting[] = [];
  readonly #stopping = new AbortController();
  #waitingBytes = 0;
  #unlogged = 0;
  #loggedAt = Number.NEGATIVE_INFINITY;
  #sending: Promise<void> | null = null;
  shipped = 0;
  dropped = 0;

  constructor(receiver: Receiver, log: Log) {
    this.receiver = receiver;
    this.#log = log;
  }

  add(instance: LoggedInstance, lines: Buffer): void {
    if (this.#waitingBytes + lines.length > maxWaitingBytes) {
      this.#drop(countLines(lines));
      return;
    }
    // A copy: the collector changes times in its own.
    this.#queue.push({ instance, lines: Buffer.from(lines) });
    this.#waitingBytes += lines.length;
    this.#sending ??= this.#sendAll().finally(() => {
      this.#sending = null;
    });
  }

  #drop(count: number): void {
    this.dropped += count;
    this.#unlogged += count;
    if (performance.now() - this.#loggedAt < logEveryMs) return;
    this.#log.warn(
      { receiver: this.receiver.name, lines: this.#unlogged },
      'lines of logs were not shipped: too many wait',
    );
    this.#loggedAt = performance.now();
    this.#unlogged = 0;
  }

  async #sendAll(): Promise<void> {
    const { signal } = this.#stopping;
    let retryMs = firstRetryMs;
    while (this.#queue.length > 0 && !signal.aborted) {
      const batch = this.#next();
      const lines = batch.flatMap(({ instance, lines }) => [...shippedLines(instance, lines)]);
      try {
        await this.receiver.send(lines);
        this.shipped += lines.length;
        this.#queue.splice(0, batch.length);
        this.#waitingBytes -= batch.reduce((sum, waiting) => sum + waiting.lines.length, 0);
        retryMs = firstRetryMs;
      } catch (error) {
        if (retryMs === firstRetryMs)
          this.#log.warn({ err: error, receiver: this.receiver.name }, 'logs cannot be shipped now');
        await pause(retryMs, undefined, { signal }).catch(() => {});
        retryMs = Math.min(2 * retryMs, longestRetryMs);
      }
    }
  }

  #next(): Waiting[] {
    let bytes = 0;
    const count = this.#queue.findIndex(({ lines }) => {
      bytes += lines.length;
      return bytes > maxBatchBytes;
    });
    return this.#queue.slice(0, count === -1 ? this.#queue.length : Math.max(count, 1));
  }

  /** What waits is lost: the next process goes on with what comes then. */
  stop(): void {
    this.#stopping.abort();
    this.receiver.close();
  }
}

/** A line as it is sent elsewhere. */
export interface ShippedLine {
  instance: LoggedInstance;
  time: string;
  stream: ReturnType<typeof streamOf>;
  text: string;
  level: LogLevel | null;
}

export function* shippedLines(instance: LoggedInstance, lines: Buffer): Generator<ShippedLine> {
  for (let start = 0; start < lines.length; ) {
    const end = lines.indexOf(newline, start);
    const text = lines.toString('utf8', start + textOffset, end);
    yield {
      instance,
      time: lines.toString('latin1', start + 1, start + 1 + timeLength),
      stream: streamOf(String.fromCharCode(lines[start]!)),
      text,
      level: readLineFields(text).level,
    };
    start = end + 1;
  }
}
