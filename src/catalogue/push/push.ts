// sluice catalogue push: the site into an object store, in the order of a publish, so that readers see a complete
// catalogue at every moment. The ledger goes along, beside the site; a copy of the catalogue that is older than the store is
// refused before anything is sent.
import { createHash } from 'node:crypto';
import { openAsBlob } from 'node:fs';
import { join } from 'node:path';
import { type PutOptions, S3 } from '../../lib/s3.ts';
import type { S3Store } from '../../lib/s3-address.ts';
import type { CatalogueDocument } from '../document.ts';
import { CatalogueError } from '../fault.ts';
import { forEachAtOnce, listFiles } from '../files.ts';
import { cacheControl, classOf, typeOf } from '../origin/header-rules.ts';
import { DOCUMENT_PATH, type SitePaths, SUMS_PATH } from '../site-paths.ts';
import { parseSums } from '../sums.ts';
import { versionFaults } from '../version-guard.ts';
import { documentFaultsAgainst, ledgerFaults } from './compare-ledgers.ts';
import { type LocalSite, readLocalSite } from './local-site.ts';
import { MediaUpload } from './media-upload.ts';

interface PushOptions {
  paths: SitePaths;
  store: S3Store;
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

/** What the store has before the push. */
interface StoredTexts {
  document: { etag: string; text: string } | null;
  sums: { etag: string; text: string } | null;
  ledger: { etag: string; text: string } | null;
}

/** Media in the store must not change, and the document may only be replaced by one that a publish would allow. */
function checkAgainstStore(local: LocalSite, stored: StoredTexts, published: Map<string, string>): void {
  if (stored.ledger !== null) {
    const faults = ledgerFaults(local.ledger, stored.ledger.text);
    if (faults.length > 0) throw new CatalogueError(faults);
  }
  const changed = [...published].filter(([path, digest]) => (local.digests.get(path) ?? digest) !== digest);
  const faults = changed.map(([path]) => `media/${path}: the store has other content under this path`);
  if (stored.document !== null) {
    const before = JSON.parse(stored.document.text) as CatalogueDocument;
    faults.push(...versionFaults(before, local.document));
    const ids = new Set(local.ledger.split('\n').flatMap((line) => /"id":"([^"]+)"/.exec(line)?.[1] ?? []));
    if (stored.ledger === null) faults.push(...documentFaultsAgainst(ids, before));
  }
  if (faults.length > 0) throw new CatalogueError(faults.slice(0, 50));
}

class Pusher {
  readonly result: PushResult = { sent: 0, present: 0, removed: 0 };
  readonly #s3: S3;
  readonly #options: PushOptions;

  constructor(options: PushOptions) {
    this.#options = options;
    this.#s3 = new S3(options.store, { signal: options.signal });
  }

  #key(path: string): string {
    const { prefix } = this.#options.store;
    return prefix === '' ? path : `${prefix}/${path}`;
  }

  /** Beside the site, as on disk, so that a rule which makes the site public does not show it. */
  get #ledgerKey(): string {
    return `${this.#options.store.prefix}.state/ledger.jsonl`;
  }

  async readStore(): Promise<StoredTexts> {
    const keys = [this.#key(DOCUMENT_PATH), this.#key(SUMS_PATH), this.#ledgerKey];
    const [document, sums, ledger] = await Promise.all(keys.map((key) => this.#s3.get(key)));
    return { document: document!, sums: sums!, ledger: ledger! };
  }

  #sent(path: string): void {
    this.result.sent++;
    this.#options.report?.(`${path}: sent`);
  }

  async putMedia(digests: Map<string, string>, published: Map<string, string>): Promise<void> {
    const upload = new MediaUpload(this.#s3, this.#options.paths.site, digests, this.#key('media/'));
    await upload.look();
    await forEachAtOnce([...digests], AT_ONCE, async ([name, sha256]) => {
      if (await upload.put(name, published.get(name) === sha256)) this.#sent(`media/${name}`);
      else this.result.present++;
    });
    await upload.confirm();
  }

  async putText(path: string, condition?: PutOptions['condition']): Promise<void> {
    const body = await openAsBlob(join(this.#options.paths.site, path));
    const about = { type: typeOf(path), cacheControl: cacheControl[classOf(path)], condition };
    await this.#putBytes(this.#key(path), path, body, about);
  }

  async putLedger(text: string, before: StoredTexts['ledger']): Promise<void> {
    if (text === (before?.text ?? '')) return;
    const about = { type: 'application/jsonl', cacheControl: 'private, no-store', condition: conditionFor(before) };
    await this.#putBytes(this.#ledgerKey, 'the ledger', new Blob([text]), about);
  }

  async #putBytes(key: string, name: string, body: Blob, about: Omit<PutOptions, 'sha256'>): Promise<void> {
    const sha256 = createHash('sha256')
      .update(Buffer.from(await body.arrayBuffer()))
      .digest('hex');
    if (about.condition === undefined && (await this.#s3.head(key))?.sha256 === sha256) {
      this.result.present++;
      return;
    }
    if ((await this.#s3.put(key, body, { ...about, sha256 })) !== 'stored')
      throw new CatalogueError(`${name}: another push changed the store in the meantime; push again`);
    this.#sent(name);
  }

  /** Removes media that the checksums do not name; to be called after the document is written. */
  async prune(digests: Map<string, string>): Promise<void> {
    const media = this.#key('media/');
    for (const { key } of await this.#s3.list(media)) {
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
  const local = await readLocalSite(options.paths);
  const pusher = new Pusher(options);
  const stored = await pusher.readStore();
  const published = parseSums(stored.sums?.text ?? '').digests;
  checkAgainstStore(local, stored, published);
  await pusher.putMedia(local.digests, published);
  const texts = (await listFiles(options.paths.site)).filter(
    (path) => !path.startsWith('media/') && path !== DOCUMENT_PATH && !/(^|\/)\.|\.(br|gz)$/.test(path),
  );
  for (const path of texts) await pusher.putText(path);
  await pusher.putLedger(local.ledger, stored.ledger);
  await pusher.putText(SUMS_PATH, conditionFor(stored.sums));
  await pusher.putText(DOCUMENT_PATH, conditionFor(stored.document));
  if (options.prune) await pusher.prune(local.digests);
  return pusher.result;
}
