import { mkdir, open, readdir, readFile, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { EnvironmentKey } from '../../environments/environment-key.ts';
import type { KnownBlobs, SegmentBytes } from './segment-bytes.ts';

/** A folder for each environment: `<dir>/<project>/<environment>/<blob>.zst`. */
export function segmentFiles(dir: string): SegmentBytes {
  const folderOf = ({ projectId, environment }: EnvironmentKey) => join(dir, projectId, environment);
  const pathOf = (key: EnvironmentKey, blob: string) => join(folderOf(key), `${blob}${extension}`);
  return {
    async save(key, blob, bytes) {
      await mkdir(folderOf(key), { recursive: true, mode: 0o700 });
      const file = await open(pathOf(key, blob), 'wx', 0o600);
      try {
        await file.writeFile(bytes);
        await file.datasync();
      } finally {
        await file.close();
      }
    },
    read: (key, blob) => unlessMissing(readFile(pathOf(key, blob)), null),
    async delete(key, blobs) {
      for (const blob of blobs) await rm(pathOf(key, blob), { force: true });
    },
    async sweep(known, olderThanMs) {
      for (const projectId of await namesIn(dir)) {
        for (const environment of await namesIn(join(dir, projectId))) {
          await sweepFolder({ projectId, environment }, folderOf, known, olderThanMs);
        }
        if ((await namesIn(join(dir, projectId))).length === 0) await removeFolder(join(dir, projectId));
      }
    },
  };
}

const extension = '.zst';
const filesAtOnce = 500;

async function sweepFolder(
  key: EnvironmentKey,
  folderOf: (key: EnvironmentKey) => string,
  known: KnownBlobs,
  olderThanMs: number,
): Promise<void> {
  const folder = folderOf(key);
  if (!(await known.hasEnvironment(key))) return removeFolder(folder);
  const names = await namesIn(folder);
  for (let next = 0; next < names.length; next += filesAtOnce) {
    const some = names.slice(next, next + filesAtOnce);
    const used = await known.referredTo(some.map((name) => name.slice(0, -extension.length)));
    for (const name of some) {
      if (used.has(name.slice(0, -extension.length))) continue;
      const found = await unlessMissing(stat(join(folder, name)), null);
      if (found && found.mtimeMs < olderThanMs) await rm(join(folder, name), { force: true });
    }
  }
}

const removeFolder = (path: string) => rm(path, { recursive: true, force: true });

const namesIn = (folder: string): Promise<string[]> => unlessMissing(readdir(folder), []);

const unlessMissing = <T, F>(work: Promise<T>, otherwise: F): Promise<T | F> =>
  work.catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return otherwise;
    throw error;
  });
