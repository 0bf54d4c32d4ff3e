// Files that must survive a crash: each is written under another name, flushed, then renamed.
import { createHash, randomBytes } from 'node:crypto';
import { link, mkdir, open, readdir, rename, rm } from 'node:fs/promises';
import { dirname, join, relative, sep } from 'node:path';
import { codeOf } from './catalogue-error.ts';

const CHUNK_BYTES = 1024 * 1024;

export async function hashFile(path: string, signal?: AbortSignal): Promise<{ sha256: string; size: number }> {
  const file = await open(path, 'r');
  try {
    const hash = createHash('sha256');
    // Two buffers: the disk fills one while the other is hashed.
    const buffers = [Buffer.allocUnsafe(CHUNK_BYTES), Buffer.allocUnsafe(CHUNK_BYTES)];
    let size = 0;
    let pending = file.read(buffers[0]!, 0, CHUNK_BYTES, 0);
    for (let turn = 0; ; turn++) {
      signal?.throwIfAborted();
      const { bytesRead, buffer } = await pending;
      if (bytesRead === 0) return { sha256: hash.digest('hex'), size };
      size += bytesRead;
      pending = file.read(buffers[(turn + 1) % 2]!, 0, CHUNK_BYTES, size);
      hash.update(buffer.subarray(0, bytesRead));
    }
  } finally {
    await file.close();
  }
}

export async function syncPath(path: string): Promise<void> {
  const file = await open(path, 'r');
  try {
    await file.sync();
  } finally {
    await file.close();
  }
}

const asideIn = (folder: string) => join(folder, `aside-${process.pid}-${randomBytes(6).toString('hex')}`);

/**
 * Replaces a file so that a reader sees the old bytes or the new ones, and a crash leaves one of them. The new bytes are
 * written to `asideFolder` first, which has to be on the same file system.
 */
export async function replaceFile(path: string, bytes: string | Buffer, asideFolder = dirname(path)): Promise<void> {
  const folder = dirname(path);
  await Promise.all([mkdir(folder, { recursive: true }), mkdir(asideFolder, { recursive: true })]);
  const aside = asideIn(asideFolder);
  try {
    const file = await open(aside, 'wx');
    try {
      await file.writeFile(bytes);
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(aside, path);
  } catch (error) {
    await rm(aside, { force: true });
    throw error;
  }
  await syncPath(folder);
}

/** Gives a finished file a second name; a file that is there already is replaced in one step. */
export async function placeLink(from: string, to: string, asideFolder: string): Promise<void> {
  try {
    await link(from, to);
  } catch (error) {
    if (codeOf(error) !== 'EEXIST') throw error;
    const aside = asideIn(asideFolder);
    await link(from, aside);
    await rename(aside, to);
    // Renaming a file to another name of itself does nothing and leaves both.
    await rm(aside, { force: true });
  }
}

/** Paths of all files under a folder, relative to it, with forward slashes, sorted. */
export async function listFiles(folder: string): Promise<string[]> {
  let entries: import('node:fs').Dirent[];
  try {
    entries = await readdir(folder, { recursive: true, withFileTypes: true });
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return [];
    throw error;
  }
  return entries
    .filter((entry) => !entry.isDirectory())
    .map((entry) => relative(folder, join(entry.parentPath, entry.name)).split(sep).join('/'))
    .sort();
}

/** Runs a task for each item, a few at a time. After a failure no further item is begun; it is thrown when all have ended. */
export async function forEachAtOnce<T>(items: T[], atOnce: number, task: (item: T) => Promise<void>): Promise<void> {
  const queue = items.values();
  let failure: { error: unknown } | undefined;
  const worker = async () => {
    for (const item of queue) {
      if (failure !== undefined) return;
      try {
        await task(item);
      } catch (error) {
        failure ??= { error };
      }
    }
  };
  await Promise.all(Array.from({ length: Math.min(atOnce, items.length) }, worker));
  if (failure !== undefined) throw failure.error;
}
