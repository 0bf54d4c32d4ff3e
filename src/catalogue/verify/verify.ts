// sluice catalogue verify: re-checks everything a client relies on, from the files alone; with the ledger beside the site,
// also that nothing published was changed since. Reports every fault it finds.
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { isText, needsForms } from '../compress.ts';
import type { CatalogueDocument, Stream } from '../document.ts';
import { listFiles } from '../files.ts';
import { foldLedger, readLedger } from '../ledger.ts';
import { type Ffmpeg, inputOf, runFfmpeg } from '../media/ffmpeg.ts';
import type { SitePaths } from '../site-paths.ts';
import { FilesOnce } from './files-once.ts';
import { FindingList } from './finding.ts';
import { verifyDigests, verifyForms } from './verify-files.ts';
import { verifyHistory } from './verify-history.ts';
import { verifyStream } from './verify-stream.ts';
import { readDocument, readSums, verifyHealth, verifyNamed } from './verify-texts.ts';

export interface VerifyOptions {
  paths: SitePaths;
  /** Decodes every progressive file and every variant as well; slow. */
  decoder?: Ffmpeg | undefined;
  signal?: AbortSignal | undefined;
}

interface VerifyResult {
  faults: string[];
  notes: string[];
  files: number;
  bytes: number;
}

interface Site {
  options: VerifyOptions;
  files: FilesOnce;
  document: CatalogueDocument | null;
  /** By path relative to media/. */
  digests: Map<string, string>;
  findings: FindingList;
}

async function decodeStream({ options, findings }: Site, decoder: Ffmpeg, stream: Stream): Promise<void> {
  for (const path of [...Object.values(stream.progressive), ...(stream.hls === null ? [] : [stream.hls])]) {
    const input = inputOf(join(options.paths.site, path));
    const args = ['-v', 'error', '-xerror', ...input, '-map', '0', '-f', 'null', '-'];
    await runFfmpeg(decoder, args, { signal: options.signal }).catch((error: Error) =>
      findings.fault(`${path.slice(1)}: cannot be decoded: ${error.message}`),
    );
  }
}

/** Media, a stream at a time: what is read for the digests is in memory for the checks that look inside. */
async function verifyMedia(site: Site): Promise<number> {
  const { options, files, document, digests, findings } = site;
  const folders = new Map<string, [path: string, sha256: string][]>();
  for (const stream of document?.streams ?? []) folders.set(stream.id, []);
  for (const [name, sha256] of digests) {
    const folder = name.slice(0, Math.max(0, name.indexOf('/')));
    const listed = folders.get(folder) ?? [];
    listed.push([`media/${name}`, sha256]);
    folders.set(folder, listed);
  }
  const renditions = new Map(document?.renditions.map((rendition) => [rendition.label, rendition]));
  const streams = new Map(document?.streams.map((stream) => [stream.id, stream]));
  let bytes = 0;
  for (const [folder, listed] of folders) {
    // Reads block: other work, such as Ctrl-C, gets its turn here.
    await new Promise(setImmediate);
    options.signal?.throwIfAborted();
    bytes += await verifyDigests(files, listed, 'SHA256SUMS', findings, options.signal);
    verifyForms(
      files,
      listed.map(([path]) => path),
      findings,
    );
    const stream = streams.get(folder);
    if (stream !== undefined) await verifyStream(files, stream, renditions, findings);
    if (stream !== undefined && options.decoder !== undefined) await decodeStream(site, options.decoder, stream);
    files.forget();
  }
  return bytes;
}

/**
 * What lies in the site: nothing unlisted among the media, every text with its compressed forms. After a publish that was
 * cut short (something is still staged) media may lie there early and forms may be missing: the next build sees to that.
 */
async function verifyListing({ options, files, digests, findings }: Site): Promise<void> {
  const isCutShort = (await readdir(options.paths.staging).catch(() => [])).length > 0;
  const report = (text: string) =>
    isCutShort ? findings.note(`${text}; a publish was cut short, the next build finishes it`) : findings.fault(text);
  const names = await listFiles(options.paths.site);
  const present = new Set(names);
  for (const name of names) {
    const inMedia = name.startsWith('media/');
    if (inMedia && !/^media\/SHA256SUMS(\.br|\.gz)?$/.test(name)) {
      if (!digests.has(name.slice('media/'.length))) report(`${name}: is not in SHA256SUMS`);
      continue;
    }
    verifyForms(files, [name], findings);
    if (!isText(name) || !needsForms(files.bytes(name))) continue;
    for (const suffix of ['.br', '.gz']) if (!present.has(name + suffix)) report(`${name}${suffix}: does not exist`);
  }
}

export async function verifySite(options: VerifyOptions): Promise<VerifyResult> {
  const findings = new FindingList();
  const files = new FilesOnce((path) => join(options.paths.site, path));
  const document = readDocument(files, findings);
  verifyHealth(files, findings);
  const digests = readSums(files, findings);
  const site = { options, files, document, digests, findings };
  const bytes = await verifyMedia(site);
  await verifyListing(site);
  if (document !== null) {
    verifyNamed(document, digests, findings);
    const { lines } = await readLedger(options.paths.ledger);
    if (lines.length > 0) verifyHistory(foldLedger(lines), document, digests, findings);
  }
  return { faults: findings.faults, notes: findings.notes, files: digests.size, bytes };
}
