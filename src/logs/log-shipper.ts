// Also sends what instances print to one receiver, by syslog or OTLP. Lines wait in queues of bounded size, one for each
// account, which take turns: one that prints a lot loses its own lines and nobody else's. While the receiver is away or slow,
// lines that do not fit are dropped, counted and logged: collecting and storing never wait for it. Where it refuses what it
// is sent, that is split until what it refuses is found, and dropped.
import { setTimeout as pause } from 'node:timers/promises';
import type { Log } from '../lib/log.ts';
import { newline, streamOf, textOffset, timeLength } from '../lib/log-lines.ts';
import { type LogLevel, readLineFields } from './read/line-fields.ts';
import type { LoggedInstance } from './store/segments.ts';

export interface Receiver {
  name: 'syslog' | 'otlp';
  /** Rejects where it may succeed later, and with `LinesRefused` where the same lines never will. */
  send(lines: ShippedLine[]): Promise<void>;
  close(): void;
}

/** The receiver will not take these lines, however often they are sent. */
export class LinesRefused extends Error {}

interface Waiting {
  instance: LoggedInstance;
  lines: Buffer;
}

const maxWaitingBytes = 8 * 1024 * 1024;
/** Of one account: a quarter. */
const maxOwnBytes = maxWaitingBytes / 4;
/** A receiver that refuses whatever it is sent is not asked about every single line. */
const maxRefusals = 50;
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
  /** By account, in the order of their turns. */
  readonly #queues = new Map<string, Waiting[]>();
  readonly #ownBytes = new Map<string, number>();
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

  add(owner: string, instance: LoggedInstance, lines: Buffer): void {
    const ownBytes = this.#ownBytes.get(owner) ?? 0;
    if (this.#waitingBytes + lines.length > maxWaitingBytes || ownBytes + lines.length > maxOwnBytes) {
      this.#drop(countLines(lines), 'too many wait');
      return;
    }
    const queue = this.#queues.get(owner) ?? [];
    this.#queues.set(owner, queue);
    // A copy: the collector changes times in its own.
    queue.push({ instance, lines: Buffer.from(lines) });
    this.#ownBytes.set(owner, ownBytes + lines.length);
    this.#waitingBytes += lines.length;
    this.#sending ??= this.#sendAll().finally(() => {
      this.#sending = null;
    });
  }

  #drop(count: number, why: string): void {
    this.dropped += count;
    this.#unlogged += count;
    if (performance.now() - this.#loggedAt < logEveryMs) return;
    this.#log.warn({ receiver: this.receiver.name, lines: this.#unlogged }, `lines of logs were not shipped: ${why}`);
    this.#loggedAt = performance.now();
    this.#unlogged = 0;
  }

  async #sendAll(): Promise<void> {
    while (!this.#stopping.signal.aborted) {
      const next = this.#queues.entries().next().value;
      if (!next) return;
      const [owner, queue] = next;
      const batch = batchOf(queue);
      await this.#sendBatch(batch.flatMap(({ instance, lines }) => [...shippedLines(instance, lines)]));
      this.#remove(owner, queue, batch);
    }
  }

  /** The account's next turn is behind those of all others. */
  #remove(owner: string, queue: Waiting[], batch: Waiting[]): void {
    const bytes = batch.reduce((sum, { lines }) => sum + lines.length, 0);
    this.#waitingBytes -= bytes;
    this.#ownBytes.set(owner, this.#ownBytes.get(owner)! - bytes);
    queue.splice(0, batch.length);
    this.#queues.delete(owner);
    if (queue.length > 0) this.#queues.set(owner, queue);
    else this.#ownBytes.delete(owner);
  }

  /** Resolves once all of it is shipped or dropped. */
  async #sendBatch(all: ShippedLine[]): Promise<void> {
    const parts = [all];
    let refusals = 0;
    for (let lines = parts.pop(); lines && !this.#stopping.signal.aborted; lines = parts.pop()) {
      if (await this.#sendLines(lines)) continue;
      refusals++;
      const half = Math.ceil(lines.length / 2);
      if (lines.length === 1 || refusals > maxRefusals) this.#drop(lines.length, 'the receiver refuses them');
      else parts.push(lines.slice(half), lines.slice(0, half));
    }
  }

  /** Gives whether they were taken; false: they are refused for good. Tries until it knows. */
  async #sendLines(lines: ShippedLine[]): Promise<boolean> {
    const { signal } = this.#stopping;
    for (let retryMs = firstRetryMs; ; retryMs = Math.min(2 * retryMs, longestRetryMs)) {
      try {
        await this.receiver.send(lines);
        this.shipped += lines.length;
        return true;
      } catch (error) {
        if (error instanceof LinesRefused) return false;
        if (retryMs === firstRetryMs)
          this.#log.warn({ err: error, receiver: this.receiver.name }, 'logs cannot be shipped now');
        await pause(retryMs, undefined, { signal }).catch(() => {});
        if (signal.aborted) return true;
      }
    }
  }

  /** What waits is lost: the next process goes on with what comes then. */
  stop(): void {
    this.#stopping.abort();
    this.receiver.close();
  }
}

function batchOf(queue: Waiting[]): Waiting[] {
  let bytes = 0;
  const count = queue.findIndex(({ lines }) => {
    bytes += lines.length;
    return bytes > maxBatchBytes;
  });
  return queue.slice(0, count === -1 ? queue.length : Math.max(count, 1));
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
