// Threads that take segments apart and search them. Each does one segment at a time, and accounts take turns, so one that
// searches a lot delays no other by more than a segment. A thread that takes too long for one is ended.
import { availableParallelism } from 'node:os';
import { Worker } from 'node:worker_threads';
import { ApiError } from '../../contract/errors.ts';
import { entryPath } from '../../lib/install.ts';
import { Turns } from '../../lib/turns.ts';
import type { ScanQuery } from './scan.ts';
import type { ReadEntry, ScanJob } from './scan-worker.ts';

interface Job extends ScanJob {
  resolve(entries: ReadEntry[]): void;
  reject(error: Error): void;
}

/** Not what shares its memory with others. */
const transferable = ({ buffer, byteLength }: Uint8Array): ArrayBuffer[] =>
  buffer instanceof ArrayBuffer && buffer.byteLength === byteLength ? [buffer] : [];

const fewestThreads = 2;
const mostThreads = 4;
const idleMs = 60_000;
/** A segment takes milliseconds; on a machine with much else to do, some hundred. */
const defaultLimitMs = 10_000;

interface Thread {
  worker: Worker;
  job: Job | null;
  limit: NodeJS.Timeout | null;
}

/** Threads start with the first search and end when there was none for a while. */
export class Scanners {
  readonly #size = Math.max(fewestThreads, Math.min(availableParallelism(), mostThreads));
  readonly #limitMs: number;
  /** An account never has all threads. */
  readonly #turns = new Turns<Job>(this.#size - 1);
  readonly #threads = new Set<Thread>();
  #lastId = 0;
  #idle: NodeJS.Timeout | null = null;

  constructor(limitMs = defaultLimitMs) {
    this.#limitMs = limitMs;
  }

  /** How many segments can be scanned at the same time. */
  get size(): number {
    return this.#size;
  }

  scan(accountId: string, bytes: Uint8Array, rawBytes: number, query: ScanQuery): Promise<ReadEntry[]> {
    const { promise, resolve, reject } = Promise.withResolvers<ReadEntry[]>();
    const job = { id: ++this.#lastId, bytes, rawBytes, query, resolve, reject };
    this.#turns.add(accountId, job);
    this.#beginNext();
    const ended = () => {
      this.#turns.done(accountId);
      this.#beginNext();
    };
    void promise.then(ended, ended);
    return promise;
  }

  #beginNext(): void {
    this.#postponeEnd();
    for (;;) {
      const idle = [...this.#threads].find(({ job }) => job === null);
      if (!idle && this.#threads.size === this.#size) return;
      const job = this.#turns.next();
      if (!job) return;
      this.#begin(idle ?? this.#start(), job);
    }
  }

  #begin(thread: Thread, job: Job): void {
    thread.job = job;
    thread.limit = setTimeout(() => this.#end(thread, tookTooLong()), this.#limitMs);
    const { id, bytes, rawBytes, query } = job;
    thread.worker.postMessage({ id, bytes, rawBytes, query } satisfies ScanJob, transferable(bytes));
  }

  #start(): Thread {
    const thread: Thread = { worker: new Worker(entryPath('log-scanner')), job: null, limit: null };
    const { worker } = thread;
    worker.unref();
    this.#threads.add(thread);
    worker.on('message', ({ entries, failure }: { entries?: ReadEntry[]; failure?: string }) => {
      const job = this.#release(thread);
      if (entries) job?.resolve(entries);
      else job?.reject(new Error(`a segment cannot be read: ${failure}`));
    });
    worker.on('error', (error) => this.#end(thread, error as Error));
    worker.on('exit', () => this.#end(thread, new Error('the thread that reads logs has ended')));
    return thread;
  }

  #release(thread: Thread): Job | null {
    const { job, limit } = thread;
    if (limit) clearTimeout(limit);
    thread.job = null;
    thread.limit = null;
    return job;
  }

  #end(thread: Thread, error: Error): void {
    this.#threads.delete(thread);
    void thread.worker.terminate();
    this.#release(thread)?.reject(error);
  }

  #postponeEnd(): void {
    if (this.#idle) this.#idle.refresh();
    else this.#idle = setTimeout(() => this.#isIdle() && void this.close(), idleMs).unref();
  }

  #isIdle(): boolean {
    return [...this.#threads].every(({ job }) => job === null);
  }

  async close(): Promise<void> {
    if (this.#idle) clearTimeout(this.#idle);
    this.#idle = null;
    await Promise.all([...this.#threads].map(({ worker }) => worker.terminate()));
  }
}

const tookTooLong = () =>
  new ApiError('busy', 'Reading this part of the log takes too long.', { headers: { 'Retry-After': '2' } });
