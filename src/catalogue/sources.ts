// Digests of source files, remembered by size and time of change, so that a build with nothing to do reads no video.
import { readFile } from 'node:fs/promises';
import { replaceFile } from './files.ts';
import { type Patience, waitUntilQuiet } from './media/source/quiet.ts';
import { digestOpen, openToRead, stampOpen, stampSource } from './media/source/source-file.ts';

interface Digested {
  stamp: string;
  sha256: string;
}

/** A file changed this recently could change again without its time of change showing it. */
const TOO_FRESH_MS = 2000;

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
  async digestOf(source: string, options: DigestOptions): Promise<Digested | null> {
    const found = stampSource(source);
    if (found === null) return null;
    const known = this.#known.get(source);
    if (known?.stamp === found.stamp) return known;
    const file = await openToRead(source);
    try {
      await waitUntilQuiet(source, file, options);
      const { stamp, changedMs } = await stampOpen(source, file);
      const digested = { stamp, sha256: await digestOpen(file, options.signal) };
      if (Date.now() - changedMs > TOO_FRESH_MS) {
        this.#known.set(source, digested);
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
