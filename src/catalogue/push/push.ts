// sluice catalogue push: the site into an object store, in the order of a publish, so that readers see a complete
// catalogue at every moment. Media is only written where there is no object yet; the document only replaces the one that was
// there when the push began.
import { createHash } from 'node:crypto';
import { openAsBlob } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type CatalogueDocument, documentFaults } from '../document.ts';
import { CatalogueError } from '../fault.ts';
import { forEachAtOnce, listFiles } from '../files.ts';
import { cacheControl, classOf, typeOf } from '../origin/header-rules.ts';
import { DOCUMENT_PATH, type SitePaths, SUMS_PATH } from '../site-paths.ts';
import { parseSums } from '../sums.ts';
import { versionFaults } from '../version-guard.ts';
import { type PutOptions, S3, type Store } from './s3.ts';

interface PushOptions {
  paths: SitePaths;
  store: Store;
  prune: boolean;
  signal?: AbortSignal | undefined;
  report?: (text: string) => void;
}

interface PushResult {
  sent: number;
  present: number;
  removed: number;
}

const AT_ONCE = 4;

async function readLocal(paths: SitePaths): Promise<{ document: CatalogueDocument; digests: Map<string, string> }> {
  const read = (path: string) =>
    readFile(join(paths.site, path), 'utf8').catch(() => {
      throw new CatalogueError(`${join(paths.site, path)} does not exist; build the catalogue first`);
    });
  const document: unknown = JSON.parse(await read(DOCUMENT_PATH));
  const sums = parseSums(await read(SUMS_PATH));
  const faults = [...documentFaults(document), ...(sums.digests.size > 0 ? sums.faults : [])];
  if (faults.length > 0) throw new CatalogueError(['the site is damaged; run: sluice catalogue verify', ...faults]);
  return { document: document as CatalogueDocument, digests: sums.digests };
}

/** Media in the store must not change, and the document may only be replaced by one that a publish would allow. */
function checkAgainstStore(
  local: { document: CatalogueDocument; digests: Map<string, string> },
  storedDocument: string | undefined,
  stored: Map<string, string>,
): void {
  const changed = [...stored].filter(([path, digest]) => (local.digests.get(path) ?? digest) !== digest);
  const faults = changed.map(([path]) => `media/${path}: the store has other content under this path`);
  if (storedDocument !== undefined)
    faults.push(...versionFaults(JSON.parse(storedDocument) as CatalogueDocument, local.document));
  if (faults.length > 0) throw new CatalogueError(faults.slice(0, 50));
}

class Pusher {
  readonly result: PushResult = { sent: 0, present: 0, removed: 0 };
  #s3: S3;
  #options: PushOptions;

  constructor(options: PushOptions) {
    this.#options = options;
    this.#s3 = new S3(options.store, options.signal);
  }

  key(path: string): string {
    const { prefix } = this.#options.store;
    return prefix === '' ? path : `${prefix}/${path}`;
  }

  get(path: string) {
    return this.#s3.get(this.key(path));
  }

  async #put(path: string, sha256: string, condition?: PutOptions['condition']): Promise<boolean> {
    const body = await openAsBlob(join(this.#options.paths.site, path));
    const about = { type: typeOf(path), cacheControl: cacheControl[classOf(path)], sha256, condition };
    const result = await this.#s3.put(this.key(path), body, about);
    if (result === 'stored') {
      this.result.sent++;
      this.#options.report?.(`${path}: sent`);
    }
    return result === 'stored';
  }

  /** Writes an immutable object; one that is there already must have the same content. */
  async putMedia(path: string, sha256: string): Promise<void> {
    const there = await this.#s3.head(this.key(path));
    if (there === null && (await this.#put(path, sha256, { ifNoneMatch: '*' }))) return;
    const now = there ?? (await this.#s3.head(this.key(path)));
    if (now?.sha256 !== sha256) throw new CatalogueError(`${path}: the store has other content under this path`);
    this.result.present++;
  }

  async putText(path: string, condition?: PutOptions['condition']): Promise<void> {
    const bytes = await readFile(join(this.#options.paths.site, path));
    const sha256 = createHash('sha256').update(bytes).digest('hex');
    if (condition === undefined && (await this.#s3.head(this.key(path)))?.sha256 === sha256) {
      this.result.present++;
      return;
    }
    if (await this.#put(path, sha256, condition)) return;
    throw new CatalogueError(`${path}: another push changed the store in the meantime; push again`);
  }

  /** Removes media that the checksums do not name; to be called after the document is written. */
  async prune(digests: Map<string, string>): Promise<void> {
    const media = this.key('media/');
    for (const key of await this.#s3.list(media)) {
      const name = key.slice(media.length);
      if (digests.has(name) || name === 'SHA256SUMS') continue;
      await this.#s3.remove(key);
      this.result.removed++;
      this.#options.report?.(`media/${name}: removed`);
    }
  }
}

const conditionFor = (stored: { etag: string } | null): PutOptions['condition'] =>
  stored === null ? { ifNoneMatch: '*' } : { ifMatch: stored.etag };

export async function pushSite(options: PushOptions): Promise<PushResult> {
  const local = await readLocal(options.paths);
  const pusher = new Pusher(options);
  const [document, sums] = await Promise.all([pusher.get(DOCUMENT_PATH), pusher.get(SUMS_PATH)]);
  const stored = parseSums(sums?.text ?? '').digests;
  checkAgainstStore(local, document?.text, stored);
  // The stored checksums were written after the media they list: that media needs no request.
  const missing = [...local.digests].filter(([path]) => !stored.has(path));
  pusher.result.present += local.digests.size - missing.length;
  await forEachAtOnce(missing, AT_ONCE, ([path, sha256]) => pusher.putMedia(`media/${path}`, sha256));
  const texts = (await listFiles(options.paths.site)).filter(
    (path) => !path.startsWith('media/') && path !== DOCUMENT_PATH && !/(^|\/)\.|\.(br|gz)$/.test(path),
  );
  for (const path of texts) await pusher.putText(path);
  await pusher.putText(SUMS_PATH, conditionFor(sums));
  await pusher.putText(DOCUMENT_PATH, conditionFor(document));
  if (options.prune) await pusher.prune(local.digests);
  return pusher.result;
}
