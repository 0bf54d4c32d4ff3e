import { availableParallelism } from 'node:os';
import { Worker } from 'node:worker_threads';
import { entryPath } from '../../lib/install.ts';
import type { Entry, ScanQuery } from './scan.ts';
import type { ScanJob } from './scan-worker.ts';

interface Waiting {
  worker: Worker;
  resolve(entries: Entry[]): void;
  reject(error: Error): void;
}

/** Not what shares its memory with others. */
const transferable = ({ buffer, byteLength }: Buffer): ArrayBuffer[] =>
  buffer instanceof ArrayBuffer && buffer.byteLength === byteLength ? [buffer] : [];

const mostThreads = 4;
const idleMs = 60_000;

/** Threads that scan segments. They start with the first search and end when there was none for a while. */
export class Scanners {
  readonly #size = Math.min(availableParallelism(), mostThreads);
  readonly #waiting = new Map<number, Waiting>();
  #workers: Worker[] = [];
  #lastId = 0;
  #idle: NodeJS.Timeout | null = null;

  /** How many segments can be scanned at the same time. */
  get size(): number {
    return this.#size;
  }

  scan(bytes: Buffer, rawBytes: number, query: ScanQuery): Promise<Entry[]> {
    const id = ++this.#lastId;
    const worker = this.#workerFor(id);
    this.#postponeEnd();
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { worker, resolve, reject });
      const job: ScanJob = { id, bytes, rawBytes, query };
      worker.postMessage(job, transferable(bytes));
    });
  }

  #workerFor(id: number): Worker {
    const index = id % this.#size;
    this.#workers[index] ??= this.#start(index);
    return this.#workers[index]!;
  }

  #start(index: number): Worker {
    const worker = new Worker(entryPath('log-scanner'));
    worker.unref();
    worker.on('message', ({ id, entries, failure }: { id: number; entries?: Entry[]; failure?: string }) => {
      const waiting = this.#waiting.get(id);
      this.#waiting.delete(id);
      if (entries) waiting?.resolve(entries);
      else waiting?.reject(new Error(`a segment cannot be read: ${failure}`));
    });
    const gone = (error: Error) => {
      if (this.#workers[index] === worker) delete this.#workers[index];
      for (const [id, waiting] of this.#waiting) {
        if (waiting.worker !== worker) continue;
        this.#waiting.delete(id);
        waiting.reject(error);
      }
    };
    worker.on('error', gone);
    worker.on('exit', () => gone(new Error('the thread that reads logs has ended')));
    return worker;
  }

  #postponeEnd(): void {
    if (this.#idle) this.#idle.refresh();
    else this.#idle = setTimeout(() => this.#waiting.size === 0 && void this.close(), idleMs).unref();
  }

  async close(): Promise<void> {
    if (this.#idle) clearTimeout(this.#idle);
    this.#idle = null;
    const workers = this.#workers.filter(Boolean);
    this.#workers = [];
    await Promise.all(workers.map((worker) => worker.terminate()));
  }
}
