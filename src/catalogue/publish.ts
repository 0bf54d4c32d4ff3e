// Putting a checked change into the site. The order gives readers a complete catalogue at every moment, also after a crash:
// media (which nothing names yet), ledger, gallery, SHA256SUMS, and the document last.
import { existsSync } from 'node:fs';
import { mkdir, readFile, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { compressedForms } from './compress.ts';
import { type CatalogueDocument, encodeDocument, sameContent } from './document.ts';
import { CatalogueError, codeOf } from './fault.ts';
import { placeLink, replaceFile, syncPath } from './files.ts';
import { galleryFiles } from './gallery-files.ts';
import type { PublishLine, StreamRecord } from './ledger.ts';
import type { SitePaths } from './site-paths.ts';
import { formatSums } from './sums.ts';

export const DOCUMENT_PATH = 'api/streams.json';
export const SUMS_PATH = 'media/SHA256SUMS';
export const HEALTH_PATH = 'health.txt';
export const HEALTH_BYTES = 'ok\n';

export async function readPublished(paths: SitePaths): Promise<CatalogueDocument | null> {
  try {
    return JSON.parse(await readFile(join(paths.site, DOCUMENT_PATH), 'utf8')) as CatalogueDocument;
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return null;
    if (error instanceof SyntaxError) throw new CatalogueError(`${DOCUMENT_PATH} is damaged; restore it from a copy`);
    throw error;
  }
}

/** Links a stream's staged files into the site. What an interrupted publish left there is replaced: nothing names it. */
export async function placeMedia(paths: SitePaths, folder: string, id: string, line: PublishLine): Promise<void> {
  const folders = new Set<string>();
  for (const path of Object.keys(line.files)) {
    const target = join(paths.site, path);
    await mkdir(dirname(target), { recursive: true });
    await placeLink(join(folder, path.slice(`media/${id}/`.length)), target, paths.staging);
    folders.add(dirname(target));
  }
  const top = join(paths.site, 'media', id);
  for (const each of [...folders, top, dirname(top)]) await syncPath(each);
}

/** Writes a text and its compressed forms, where it differs from what is there. */
async function placeText(paths: SitePaths, path: string, text: string | Buffer): Promise<void> {
  const target = join(paths.site, path);
  const bytes = Buffer.from(text as string);
  const current = await readFile(target).catch(() => null);
  if (current?.equals(bytes)) return;
  const forms = await compressedForms(bytes);
  // A compressed form that is no longer made must not outlive the text it was made of.
  for (const suffix of ['.br', '.gz'] as const) {
    const form = forms.find((each) => each.suffix === suffix);
    if (form === undefined) await rm(target + suffix, { force: true });
    else await replaceFile(target + suffix, form.bytes, paths.staging);
  }
  await replaceFile(target, bytes, paths.staging);
}

function sumsOf(records: Iterable<StreamRecord>): string {
  const digests = new Map<string, string>();
  for (const record of records) {
    if (record.purged) continue;
    for (const [path, file] of record.files) digests.set(path.slice('media/'.length), file.sha256);
  }
  return formatSums(digests);
}

async function placeDocument(
  paths: SitePaths,
  published: CatalogueDocument | null,
  next: CatalogueDocument,
): Promise<void> {
  if (published !== null && sameContent(published, next)) return;
  await placeText(paths, DOCUMENT_PATH, encodeDocument(next));
}

export async function placeTexts(
  paths: SitePaths,
  records: Map<string, StreamRecord>,
  published: CatalogueDocument | null,
  next: CatalogueDocument,
): Promise<void> {
  await placeText(paths, HEALTH_PATH, HEALTH_BYTES);
  for (const [path, bytes] of await galleryFiles()) await placeText(paths, path, bytes);
  await placeText(paths, SUMS_PATH, sumsOf(records.values()));
  await placeDocument(paths, published, next);
}

/** In the reverse order: first the document stops naming the files, then the checksums do, then the files go. */
export async function removeFromSite(
  paths: SitePaths,
  records: Map<string, StreamRecord>,
  published: CatalogueDocument | null,
  next: CatalogueDocument,
): Promise<void> {
  await placeDocument(paths, published, next);
  await placeText(paths, SUMS_PATH, sumsOf(records.values()));
  for (const record of records.values()) {
    const folder = join(paths.site, 'media', record.id);
    if (record.purged && existsSync(folder)) await rm(folder, { recursive: true });
  }
}
