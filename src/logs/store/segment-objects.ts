import { createHash } from 'node:crypto';
import { ApiError } from '../../contract/errors.ts';
import type { EnvironmentKey } from '../../environments/environment-key.ts';
import { type ListedObject, S3 } from '../../lib/s3.ts';
import type { S3Store } from '../../lib/s3-address.ts';
import type { KnownBlobs, SegmentBytes } from './segment-bytes.ts';

const saveTimeoutMs = 20_000;
/** Somebody waits for it. */
const readTimeoutMs = 5000;
const extension = '.zst';

/** Objects of an S3 bucket, which every process reads: `<prefix>/<project>/<environment>/<blob>.zst`. */
export function segmentObjects(store: S3Store): SegmentBytes {
  const s3 = new S3(store, { timeoutMs: saveTimeoutMs });
  const reader = new S3(store, { timeoutMs: readTimeoutMs });
  const root = store.prefix === '' ? '' : `${store.prefix}/`;
  const nameOf = ({ projectId, environment }: EnvironmentKey, blob: string) =>
    `${root}${projectId}/${environment}/${blob}${extension}`;
  return {
    async save(key, blob, bytes) {
      const sha256 = createHash('sha256').update(bytes).digest('hex');
      const about = { type: 'application/zstd', cacheControl: 'no-store', sha256 };
      await s3.put(nameOf(key, blob), new Blob([new Uint8Array(bytes)]), about);
    },
    read: (key, blob) => reader.read(nameOf(key, blob)).catch(unavailable),
    async delete(key, blobs) {
      for (const blob of blobs) await s3.remove(nameOf(key, blob));
    },
    async sweep(known, olderThanMs) {
      for await (const page of s3.pages(root)) {
        for (const name of await unusedOf(page, root, known, olderThanMs)) await s3.remove(name);
      }
    },
  };
}

function unavailable(cause: unknown): never {
  throw new ApiError('logs_unavailable', 'The bucket that logs are kept in does not answer.', {
    headers: { 'Retry-After': '5' },
    cause,
  });
}

/** Only what is named as above: the bucket may hold other things. */
async function unusedOf(page: ListedObject[], root: string, known: KnownBlobs, olderThanMs: number): Promise<string[]> {
  const objects = page.flatMap((object) => {
    const [projectId = '', environment = '', file = '', ...more] = object.key.slice(root.length).split('/');
    const isOurs = projectId.startsWith('prj_') && file.endsWith(extension) && more.length === 0;
    return isOurs ? [{ ...object, key: { projectId, environment }, name: object.key, blob: blobOf(file) }] : [];
  });
  const used = await known.referredTo(objects.map(({ blob }) => blob));
  const there = new Map<string, Promise<boolean>>();
  const unused: string[] = [];
  for (const { key, name, blob, modifiedMs } of objects) {
    if (used.has(blob)) continue;
    const folder = name.slice(0, name.lastIndexOf('/'));
    const isThere = there.get(folder) ?? known.hasEnvironment(key);
    there.set(folder, isThere);
    if (modifiedMs < olderThanMs || !(await isThere)) unused.push(name);
  }
  return unused;
}

const blobOf = (file: string): string => file.slice(0, -extension.length);
