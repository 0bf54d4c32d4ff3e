// The sample streams of a first start. They come with the install as encoded files (scripts/build-samples.ts makes them), so
// that a new machine has something to show at once, without a download and without ffmpeg. One of them has no HLS.
import { existsSync } from 'node:fs';
import { cp, mkdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { installDir } from '../lib/install.ts';
import type { CatalogueDocument } from './document.ts';
import { appendLedger, foldLedger, type PublishLine, readLedger } from './ledger.ts';
import { checkOneFileSystem, placeMedia, placeTexts, whileLocked } from './publish.ts';
import { DOCUMENT_PATH, type SitePaths, sitePathsOf } from './site-paths.ts';
import { completeFolder } from './staging.ts';

/** As a build left them: the document, the ledger, and the media without compressed forms. */
export const sampleFolder = join(installDir, 'src/catalogue/samples');
export const SAMPLE_DOCUMENT = 'streams.json';
export const SAMPLE_LEDGER = 'ledger.jsonl';

/** Whether a site is empty, or was interrupted while it got its samples. */
export const needsSample = (site: string) => !existsSync(join(site, DOCUMENT_PATH));

/** What a stream has in the site: the files of the install, and compressed forms that are made here. */
async function stageSample(paths: SitePaths, line: PublishLine): Promise<{ line: PublishLine; folder: string }> {
  const folder = join(paths.staging, line.id);
  await rm(folder, { recursive: true, force: true });
  await cp(join(sampleFolder, 'media', line.id), folder, { recursive: true });
  const files = Object.entries(await completeFolder(folder));
  return {
    line: { ...line, files: Object.fromEntries(files.map(([name, file]) => [`media/${line.id}/${name}`, file])) },
    folder,
  };
}

async function placeLocked(paths: SitePaths, at: string): Promise<void> {
  const ledger = await readLedger(paths.ledger);
  const { lines: samples } = await readLedger(join(sampleFolder, SAMPLE_LEDGER));
  const isSample = (id: string) => samples.some((line) => line.id === id);
  // A ledger that knows others belongs to a site whose files are elsewhere.
  if (!needsSample(paths.site) || ledger.lines.some(({ id }) => !isSample(id))) return;
  await mkdir(paths.staging, { recursive: true });
  await checkOneFileSystem(paths);
  const records = foldLedger(ledger.lines);
  const added: PublishLine[] = [];
  for (const line of samples) {
    if (line.type !== 'publish' || records.has(line.id)) continue;
    const staged = await stageSample(paths, { ...line, at });
    await placeMedia(paths, staged, undefined);
    added.push(staged.line);
  }
  await appendLedger(paths.ledger, ledger.completeBytes, added);
  const shipped = JSON.parse(await readFile(join(sampleFolder, SAMPLE_DOCUMENT), 'utf8')) as CatalogueDocument;
  const next = foldLedger([...ledger.lines, ...added]);
  await placeTexts(paths, next, null, { ...shipped, updated: at.slice(0, 10) });
  await rm(paths.staging, { recursive: true, force: true });
}

/** Publishes the sample streams in an empty site. */
export function placeSample(site: string, now: () => Date): Promise<void> {
  const paths = sitePathsOf(site);
  return whileLocked(paths, () => placeLocked(paths, now().toISOString()));
}
