// What the checks share: where they report, how they read files, and the checks of single files: digests, and
// compressed forms against the texts they were made of.
import { hash } from 'node:crypto';
import { closeSync, constants, fstatSync, openSync, readFileSync, readSync } from 'node:fs';
import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import { codeOf } from '../catalogue-error.ts';
import { hashFile } from '../files.ts';
import type { PublishedFile } from '../ledger.ts';
import type { MediaFile } from '../media/fragments.ts';

/** What verify found. A fault breaks something a client relies on; a note is worth knowing. */
export interface Findings {
  fault(text: string): void;
  note(text: string): void;
}

export class FindingList implements Findings {
  readonly faults: string[] = [];
  readonly notes: string[] = [];

  fault(text: string): void {
    this.faults.push(text);
  }

  note(text: string): void {
    this.notes.push(text);
  }
}

/** Files of one stream that are kept; what does not fit is read again, by those who need it. */
const ROOM_BYTES = 32 * 1024 * 1024;
/** Most streams are small, and memory that nobody uses still makes the garbage collector work. */
const FIRST_PIECE_BYTES = 1024 * 1024;
/** A link is not followed, and a named pipe does not block. */
const PLAIN_ONLY = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;

type ReadResult = PublishedFile | 'missing' | 'not a plain file';

/**
 * Files as the checks need them: each is read once, hashed, and kept in memory while its stream is checked, so that a site of
 * many small files costs little more than its digests. Blocking reads: for small files they take a third of the time.
 */
export class FilesOnce {
  /** Where a path of the site lies on disk. */
  readonly #locate: (path: string) => string;
  #kept = new Map<string, Buffer>();
  /** Memory for many files, used again for each stream: to allocate it for each file costs more than to read it. */
  #piece: Buffer = Buffer.alloc(0);
  #pieceUsedBytes = 0;
  #usedBytes = 0;

  constructor(locate: (path: string) => string) {
    this.#locate = locate;
  }

  async digest(path: string, signal?: AbortSignal): Promise<ReadResult> {
    try {
      const bytes = this.#read(this.#locate(path));
      if (bytes === 'not a plain file') return bytes;
      if (bytes === null) return await hashFile(this.#locate(path), signal);
      this.#kept.set(path, bytes);
      return { sha256: hash('sha256', bytes, 'hex'), size: bytes.length };
    } catch (error) {
      if (codeOf(error) === 'ENOENT' || codeOf(error) === 'ENOTDIR') return 'missing';
      if (codeOf(error) === 'ELOOP') return 'not a plain file';
      throw error;
    }
  }

  /** The whole of a file, while there is room for it; else null. */
  #read(path: string): Buffer | null | 'not a plain file' {
    const file = openSync(path, PLAIN_ONLY);
    try {
      const facts = fstatSync(file);
      if (!facts.isFile()) return 'not a plain file';
      if (facts.size > ROOM_BYTES - this.#usedBytes) return null;
      const room = this.#take(facts.size);
      let length = 0;
      for (let more = -1; more !== 0 && length < facts.size; length += more)
        more = readSync(file, room, length, facts.size - length, length);
      return room.subarray(0, length);
    } finally {
      closeSync(file);
    }
  }

  #take(bytes: number): Buffer {
    if (bytes > this.#piece.length - this.#pieceUsedBytes) {
      const next = Math.min(2 * this.#piece.length, ROOM_BYTES);
      this.#piece = Buffer.allocUnsafeSlow(Math.max(bytes, next, FIRST_PIECE_BYTES));
      this.#pieceUsedBytes = 0;
    }
    const from = this.#pieceUsedBytes;
    this.#pieceUsedBytes += bytes;
    this.#usedBytes += bytes;
    return this.#piece.subarray(from, from + bytes);
  }

  /** For readers of MP4 files, which take only the headers of a large one. */
  media(path: string): MediaFile {
    return this.#kept.get(path) ?? this.#locate(path);
  }

  bytes(path: string): Buffer {
    return this.#kept.get(path) ?? readFileSync(this.#locate(path));
  }

  text(path: string): string {
    return this.bytes(path).toString('utf8');
  }

  /** The bytes, or null where there is no such file. */
  find(path: string): Buffer | null {
    try {
      return this.bytes(path);
    } catch (error) {
      if (codeOf(error) === 'ENOENT' || codeOf(error) === 'ENOTDIR') return null;
      throw error;
    }
  }

  /** To be called between streams; bytes that were given out are no longer theirs after it. */
  forget(): void {
    this.#kept.clear();
    this.#pieceUsedBytes = 0;
    this.#usedBytes = 0;
  }
}

/** Reads every file; gives how many bytes that were. */
export async function verifyDigests(
  files: FilesOnce,
  expected: Iterable<readonly [path: string, sha256: string]>,
  listedIn: string,
  findings: Findings,
  signal?: AbortSignal,
): Promise<number> {
  let bytes = 0;
  for (const [path, digest] of expected) {
    const read = await files.digest(path, signal);
    if (read === 'missing') findings.fault(`${path}: does not exist`);
    else if (read === 'not a plain file') findings.fault(`${path}: is not a plain file`);
    else {
      bytes += read.size;
      if (read.sha256 !== digest) findings.fault(`${path}: its digest is not the one in ${listedIn}`);
    }
  }
  return bytes;
}

const unpackers = { '.br': brotliDecompressSync, '.gz': gunzipSync };

/** The text that a path is a compressed form of; null: it is none. */
const plainOf = (path: string): string | null => (/\.(br|gz)$/.test(path) ? path.slice(0, -3) : null);

/** Why the compressed form at `path` is wrong; null: it is right. */
export function formFault(files: FilesOnce, path: string): string | null {
  const plainPath = plainOf(path)!;
  const plain = files.find(plainPath);
  if (plain === null) return `what it was made of, ${plainPath}, does not exist`;
  try {
    const unpack = unpackers[path.slice(-3) as '.br' | '.gz'];
    // One piece of memory as large as the text, instead of many small ones that are joined at the end.
    const unpacked = unpack(files.bytes(path), { maxOutputLength: plain.length + 1, chunkSize: plain.length + 64 });
    const same = unpacked.equals(plain);
    return same ? null : `is not the compressed form of ${plainPath}`;
  } catch {
    return 'cannot be unpacked';
  }
}

export function verifyForms(files: FilesOnce, paths: Iterable<string>, findings: Findings): void {
  for (const path of paths) {
    const fault = plainOf(path) === null ? null : formFault(files, path);
    if (fault !== null) findings.fault(`${path}: ${fault}`);
  }
}
