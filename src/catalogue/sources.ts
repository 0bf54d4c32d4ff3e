// Digests of source files, remembered by size and time of change, so that a build with nothing to do reads no video. A
// file that is still being copied looks like a video that ends early: one that was written to a moment ago is watched
// until it has not changed for a while.
import { type FileHandle, readFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { CatalogueError } from './catalogue-error.ts';
import { replaceFile } from './files.ts';
import { digestOpen, openToRead, type SourceName, stampOpen, stampSource } from './media/source-file.ts';

export interface Patience {
  /** How long a file must not have changed. */
  quietMs: number;
  /** How long to wait for that. */
  longestMs: number;
}

export const usualPatience: Patience = { quietMs: 2000, longestMs: 60_000 };

interface Waiting {
  patience: Patience;
  signal?: AbortSignal | undefined;
  /** Told once, where there is something to wait for. */
  onWait?: (text: string) => void;
}

const POLL_MS = 100;

/** Returns when the open file has not changed for a while; the clock of the machine only decides whether to look closer. */
async function waitUntilQuiet(source: SourceName, file: FileHandle, waiting: Waiting): Promise<void> {
  const { quietMs, longestMs } = waiting.patience;
  let last = await stampOpen(source, file);
  if (Math.abs(Date.now() - last.writtenMs) >= quietMs) return;
  waiting.onWait?.(`${source.name} was written to a moment ago; waiting until it is complete`);
  const startedMs = performance.now();
  let stillSinceMs = startedMs;
  while (performance.now() - stillSinceMs < quietMs) {
    if (performance.now() - startedMs > longestMs)
      throw new CatalogueError(`${source.name} is still being written; build again when it is complete`);
    await sleep(Math.min(POLL_MS, quietMs), undefined, { signal: waiting.signal });
    const now = await stampOpen(source, file);
    if (now.stamp !== last.stamp) stillSinceMs = performance.now();
    last = now;
  }
}

interface Digested {
  stamp: string;
  sha256: string;
}

/** A file changed this recently could change again without its time of change showing it. */
const TOO_RECENT_MS = 2000;

interface DigestOptions {
  patience: Patience;
  signal?: AbortSignal | undefined;
  onWait?: (text: string) => void;
}

export class SourceDigests {
  #known: Map<string, Digested>;
  #path: string;
  #changed = false;

  private constructor(path: string, known: Map<string, Digested>) {
    this.#path = path;
    this.#known = known;
  }

  static async load(path: string): Promise<SourceDigests> {
    try {
      const stored = JSON.parse(await readFile(path, 'utf8')) as Record<string, Digested>;
      return new SourceDigests(path, new Map(Object.entries(stored)));
    } catch {
      // It is only a cache: where it is missing or damaged, digests are computed again.
      return new SourceDigests(path, new Map());
    }
  }

  /** Null where there is no such file. A file that is still being written is waited for. */
  async digestOf(source: SourceName, options: DigestOptions): Promise<Digested | null> {
    const found = stampSource(source);
    if (found === null) return null;
    const known = this.#known.get(source.path);
    if (known?.stamp === found.stamp) return known;
    const file = await openToRead(source);
    try {
      await waitUntilQuiet(source, file, options);
      const { stamp, changedMs } = await stampOpen(source, file);
      const digested = { stamp, sha256: await digestOpen(file, options.signal) };
      if (Date.now() - changedMs > TOO_RECENT_MS) {
        this.#known.set(source.path, digested);
        this.#changed = true;
      }
      return digested;
    } finally {
      await file.close();
    }
  }

  async save(): Promise<void> {
    if (this.#changed) await replaceFile(this.#path, JSON.stringify(Object.fromEntries(this.#known)));
    this.#changed = false;
  }
}
