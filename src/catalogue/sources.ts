// Digests of source files, remembered by size and time of change, so that a build with nothing to do reads no video.
import { readFile, stat } from 'node:fs/promises';
import { codeOf } from './fault.ts';
import { hashFile, replaceFile } from './files.ts';

interface Remembered {
  stamp: string;
  sha256: string;
}

/** A file changed this recently could change again without its time of change showing it. */
const TOO_FRESH_MS = 2000;

export class SourceDigests {
  #known: Map<string, Remembered>;
  #path: string;
  #changed = false;

  private constructor(path: string, known: Map<string, Remembered>) {
    this.#path = path;
    this.#known = known;
  }

  static async load(path: string): Promise<SourceDigests> {
    try {
      const stored = JSON.parse(await readFile(path, 'utf8')) as Record<string, Remembered>;
      return new SourceDigests(path, new Map(Object.entries(stored)));
    } catch {
      // It is only a cache: where it is missing or damaged, digests are computed again.
      return new SourceDigests(path, new Map());
    }
  }

  /** Null where there is no such file. */
  async digestOf(source: string, nowMs: number, signal?: AbortSignal): Promise<string | null> {
    try {
      const facts = await stat(source);
      const stamp = `${facts.size} ${facts.mtimeMs} ${facts.ctimeMs} ${facts.ino}`;
      const known = this.#known.get(source);
      if (known?.stamp === stamp) return known.sha256;
      const { sha256 } = await hashFile(source, signal);
      if (nowMs - Math.max(facts.mtimeMs, facts.ctimeMs) > TOO_FRESH_MS) {
        this.#known.set(source, { stamp, sha256 });
        this.#changed = true;
      }
      return sha256;
    } catch (error) {
      if (codeOf(error) === 'ENOENT' || codeOf(error) === 'ENOTDIR') return null;
      throw error;
    }
  }

  async save(): Promise<void> {
    if (this.#changed) await replaceFile(this.#path, JSON.stringify(Object.fromEntries(this.#known)));
    this.#changed = false;
  }
}
