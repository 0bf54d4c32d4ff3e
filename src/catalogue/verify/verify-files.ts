// Files against what is known of them: digests, and compressed forms against the texts they were made of.
import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import type { FilesOnce } from './files-once.ts';
import type { Findings } from './finding.ts';

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
export const plainOf = (path: string): string | null => (/\.(br|gz)$/.test(path) ? path.slice(0, -3) : null);

/** Why the compressed form at `path` is wrong; null: it is right. */
export function formFault(files: FilesOnce, path: string): string | null {
  const plainPath = plainOf(path)!;
  const plain = files.find(plainPath);
  if (plain === null) return `what it was made of, ${plainPath}, does not exist`;
  try {
    const unpack = unpackers[path.slice(-3) as '.br' | '.gz'];
    const same = unpack(files.bytes(path), { maxOutputLength: plain.length + 1 }).equals(plain);
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
