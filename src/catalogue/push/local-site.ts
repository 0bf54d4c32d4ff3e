// The site on this machine, as push needs it: what it says of itself, and the bytes that go to the store.
import { hash } from 'node:crypto';
import { openAsBlob } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { constants, gzip } from 'node:zlib';
import { type CatalogueDocument, documentFaults } from '../document.ts';
import { CatalogueError, codeOf } from '../fault.ts';
import { DOCUMENT_PATH, type SitePaths, SUMS_PATH } from '../site-paths.ts';
import { parseSums } from '../sums.ts';

export interface LocalSite {
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

export async function readLocalSite(paths: SitePaths): Promise<LocalSite> {
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

export interface StoredForm {
  body: Blob;
  encoding: 'gzip' | undefined;
  /** Of the body. */
  sha256: string;
}

/**
 * The bytes that a store keeps of a file below media/. A store cannot choose between forms by what a client accepts, and Apple's
 * authoring rules (10.1) want playlists compressed: so these are stored as gzip, which every player takes.
 */
export async function storedForm(site: string, name: string, digests: Map<string, string>): Promise<StoredForm> {
  const file = join(site, 'media', name);
  if (!name.endsWith('.m3u8')) return { body: await openAsBlob(file), encoding: undefined, sha256: digests.get(name)! };
  const made = digests.get(`${name}.gz`);
  if (made !== undefined) return { body: await openAsBlob(`${file}.gz`), encoding: 'gzip', sha256: made };
  // Streams that were published before small playlists had compressed forms.
  const packed = await promisify(gzip)(await readFile(file), { level: constants.Z_BEST_COMPRESSION });
  return { body: new Blob([new Uint8Array(packed)]), encoding: 'gzip', sha256: hash('sha256', packed, 'hex') };
}
