// sluice catalogue push: the site into an object store, in the order of a publish, so that readers see a complete
// catalogue at every moment. The ledger travels with the site, beside it. A ledger only ever grows: the one in the
// store must be the beginning of ours, or ours is a copy that missed something, such as the withdrawal of an id, and
// nothing is sent.

import { createHash, hash } from 'node:crypto';
import { openAsBlob } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { constants, gzip } from 'node:zlib';
import { type PutOptions, S3 } from '../lib/s3.ts';
import type { S3Store } from '../lib/s3-address.ts';
import { CatalogueError, codeOf } from './catalogue-error.ts';
import { type CatalogueDocument, documentFaults } from './document.ts';
import { forEachAtOnce, listFiles } from './files.ts';
import { cacheControl, classOf, typeOf } from './header-rules.ts';
import type { LedgerLine } from './ledger.ts';
import { DOCUMENT_PATH, type SitePaths, SUMS_PATH } from './site-paths.ts';
import { parseSums } from './site-texts.ts';
import { versionFaults } from './version-guard.ts';

const MOST_NAMED = 10;

const ledgerEntryNames: Record<LedgerLine['type'], string> = {
  publish: 'a publish of',
  withdraw: 'the withdrawal of',
  purge: 'the purge of',
};

function describe(text: string): string {
  try {
    const { type, id, at } = JSON.parse(text) as LedgerLine;
    return `${ledgerEntryNames[type]} ${id} (${at})`;
  } catch {
    return 'a line that cannot be read';
  }
}

const ledgerLines = (text: string) => text.split('\n').slice(0, -1);

/** Why a copy with this ledger must not be pushed; empty where it may. Both are the texts of ledgers. */
function ledgerFaults(local: string, stored: string): string[] {
  if (local.startsWith(stored)) return [];
  const ours = new Set(ledgerLines(local));
  const missing = ledgerLines(stored).filter((line) => !ours.has(line));
  const named = missing.slice(0, MOST_NAMED).map((line) => `this copy lacks ${describe(line)}`);
  const more = missing.length > MOST_NAMED ? [`and ${missing.length - MOST_NAMED} more`] : [];
  const why = stored.startsWith(local)
    ? 'this copy of the catalogue is older than the store; bring the newer site and its state here first'
    : 'this copy of the catalogue and the store have different histories; push from the copy that the store came from';
  return [why, ...named, ...more];
}

/** For a store that was filled before ledgers were pushed: ours has to know at least every stream that is there. */
function documentFaultsAgainst(ids: Set<string>, stored: CatalogueDocument): string[] {
  return stored.streams
    .filter(({ id }) => !ids.has(id))
    .map(({ id }) => `stream ${id} is in the store and not in the ledger of this copy; restore the ledger`);
}

/** What the site on this machine says of itself. */
interface LocalSite {
  document: CatalogueDocument;
  /** By path relative to media/. */
  digests: Map<string, string>;
  /** The text of the ledger, complete lines only. */
  ledger: string;
}

async function readLedgerText(path: string, document: CatalogueDocument): Promise<string> {
  try {
    const text = await readFile(path, 'utf8');
    return text.slice(0, text.lastIndexOf('\n') + 1);
  } catch (error) {
    if (codeOf(error) !== 'ENOENT') throw error;
    if (document.streams.length === 0) return '';
    throw new CatalogueError(`${path} does not exist; the ledger goes to the store with the site`);
  }
}

async function readLocalSite(paths: SitePaths): Promise<LocalSite> {
  const read = (path: string) =>
    readFile(join(paths.site, path), 'utf8').catch(() => {
      throw new CatalogueError(`${join(paths.site, path)} does not exist; build the catalogue first`);
    });
  const document: unknown = JSON.parse(await read(DOCUMENT_PATH));
  const sums = parseSums(await read(SUMS_PATH));
  const faults = [...documentFaults(document), ...(sums.digests.size > 0 ? sums.faults : [])];
  if (faults.length > 0) throw new CatalogueError(['the site is damaged; run: sluice catalogue verify', ...faults]);
  const known = document as CatalogueDocument;
  return { document: known, digests: sums.digests, ledger: await readLedgerText(paths.ledger, known) };
}

interface StoredForm {
  body: Blob;
  encoding: 'gzip' | undefined;
  /** Of the body. */
  sha256: string;
}

/**
 * The bytes that a store keeps of a file below media/. A store cannot choose between forms by what a client accepts, and Apple's
 * authoring rules (10.1) want playlists compressed: so these are stored as gzip, which every player takes.
 */
async function storedForm(site: string, name: string, digests: Map<string, string>): Promise<StoredForm> {
  const file = join(site, 'media', name);
  if (!name.endsWith('.m3u8')) return { body: await openAsBlob(file), encoding: undefined, sha256: digests.get(name)! };
  const made = digests.get(`${name}.gz`);
  if (made !== undefined) return { body: await openAsBlob(`${file}.gz`), encoding: 'gzip', sha256: made };
  // Streams that were published before small playlists had compressed forms.
  const packed = await promisify(gzip)(await readFile(file), { level: constants.Z_BEST_COMPRESSION });
  return { body: new Blob([new Uint8Array(packed)]), encoding: 'gzip', sha256: hash('sha256', packed, 'hex') };
}

/**
 * Media on its way into the store. Nothing that is whole is ever overwritten; what a killed push left, or a store lost part
 * of, is replaced. One listing before and one after give the sizes of all objects, in a request for each thousand.
 */
class MediaUpload {
  readonly #s3: S3;
  readonly #site: string;
  /** By path relative to media/. */
  readonly #digests: Map<string, string>;
  /** Key of the folder, with the slash. */
  readonly #folder: string;
  /** Sizes in the store, by path relative to media/. */
  #stored = new Map<string, number>();
  readonly #sent = new Map<string, number>();

  constructor(s3: S3, site: string, digests: Map<string, string>, folder: string) {
    this.#s3 = s3;
    this.#site = site;
    this.#digests = digests;
    this.#folder = folder;
  }

  async listStored(): Promise<void> {
    const objects = await this.#s3.list(this.#folder);
    this.#stored = new Map(objects.map(({ key, size }) => [key.slice(this.#folder.length), size]));
  }

  /** Whether the file had to be sent. `isPublished`: the checksums in the store, written after their media, list it. */
  async put(name: string, isPublished: boolean): Promise<boolean> {
    const form = await storedForm(this.#site, name, this.#digests);
    const size = this.#stored.get(name);
    if (size === form.body.size && isPublished) return false;
    if (size === undefined) return this.#send(name, form, { ifNoneMatch: '*' });
    const there = await this.#s3.head(this.#folder + name);
    if (there === null) return this.#send(name, form, { ifNoneMatch: '*' });
    if (there.sha256 === this.#digests.get(name) && there.size === form.body.size) return false;
    return this.#send(name, form, { ifMatch: there.etag });
  }

  async #send(name: string, { body, encoding, sha256: bodySha256 }: StoredForm, condition: PutOptions['condition']) {
    const sha256 = this.#digests.get(name)!;
    const about = {
      type: typeOf(`media/${name}`),
      cacheControl: cacheControl.media,
      sha256,
      encoding,
      // The digest that people know is of the file; the store has to check the bytes that it is sent.
      bodySha256,
      condition,
    };
    if ((await this.#s3.put(this.#folder + name, body, about)) !== 'stored') {
      const there = await this.#s3.head(this.#folder + name);
      if (there?.sha256 !== sha256)
        throw new CatalogueError(`media/${name}: another push is writing other content under this path`);
      return false;
    }
    this.#sent.set(name, body.size);
    return true;
  }

  /** Everything that was sent has to be there, whole, before anything names it. */
  async confirm(): Promise<void> {
    if (this.#sent.size === 0) return;
    await this.listStored();
    const faults = [...this.#sent].flatMap(([name, size]) => {
      const stored = this.#stored.get(name);
      return stored === size ? [] : [`media/${name}: the store has ${stored ?? 'none'} of ${size} bytes; push again`];
    });
    if (faults.length > 0) throw new CatalogueError(faults.slice(0, 50));
  }
}

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
    await upload.listStored();
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
    // A connection that was lost after the store had taken the bytes looks like somebody else's write.
    if (
      (await this.#s3.put(key, body, { ...about, sha256 })) !== 'stored' &&
      (await this.#s3.head(key))?.sha256 !== sha256
    )
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
