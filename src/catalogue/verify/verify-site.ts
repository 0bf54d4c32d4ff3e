// sluice catalogue verify: re-checks everything a client relies on, from the files alone; with the ledger beside the
// site, also that nothing published was changed since. Reports every fault it finds.

import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { type CatalogueDocument, documentFaults, type Stream } from '../document.ts';
import { listFiles } from '../files.ts';
import { foldLedger, readLedger, type StreamRecord } from '../ledger.ts';
import { type Ffmpeg, inputOf, runFfmpeg } from '../media/ffmpeg.ts';
import { DOCUMENT_PATH, HEALTH_BYTES, HEALTH_PATH, type SitePaths, SUMS_PATH } from '../site-paths.ts';
import { isText, needsForms, parseSums } from '../site-texts.ts';
import { forgottenLines, readTombstones } from '../tombstones.ts';
import { FilesOnce, FindingList, type Findings, verifyDigests, verifyForms } from './verify-files.ts';
import { verifyStream } from './verify-stream.ts';

function readDocument(files: FilesOnce, findings: Findings): CatalogueDocument | null {
  const fault = (text: string) => {
    findings.fault(`${DOCUMENT_PATH}: ${text}`);
    return null;
  };
  const bytes = files.find(DOCUMENT_PATH);
  if (bytes === null) return fault('does not exist');
  try {
    const document: unknown = JSON.parse(bytes.toString('utf8'));
    const faults = documentFaults(document);
    faults.forEach(fault);
    return faults.length === 0 ? (document as CatalogueDocument) : null;
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    return fault('is not JSON');
  }
}

function readSums(files: FilesOnce, findings: Findings): Map<string, string> {
  const bytes = files.find(SUMS_PATH);
  if (bytes === null) findings.fault(`${SUMS_PATH}: does not exist`);
  const { digests, faults } = parseSums(bytes?.toString('utf8') ?? '');
  if (bytes !== null && bytes.length > 0) for (const fault of faults) findings.fault(`${SUMS_PATH}: ${fault}`);
  return digests;
}

function verifyHealth(files: FilesOnce, findings: Findings): void {
  if (files.find(HEALTH_PATH)?.toString('latin1') !== HEALTH_BYTES)
    findings.fault(`${HEALTH_PATH}: is not the three bytes "ok\\n"`);
}

/** Every path that the document names has to be media, and in the checksums. */
function verifyNamed(document: CatalogueDocument, digests: Map<string, string>, findings: Findings): void {
  for (const stream of document.streams) {
    const { poster, thumbnails, hls } = stream;
    for (const path of [...Object.values(stream.progressive), hls, poster, thumbnails]) {
      if (typeof path !== 'string') continue;
      if (!path.startsWith('/media/')) findings.fault(`stream ${stream.id}: ${path} is not under /media/`);
      else if (!path.startsWith(`/media/${stream.id}/`))
        findings.fault(`stream ${stream.id}: ${path} belongs to another stream`);
      else if (!digests.has(path.slice('/media/'.length))) findings.fault(`${path.slice(1)}: is not in SHA256SUMS`);
    }
  }
}

/** Whether the document agrees with the ledger on a stream; where it does not, a publish or withdrawal was interrupted. */
function isFinished({ facts: { hls, progressive } }: StreamRecord, stream: Stream | undefined): boolean {
  return stream !== undefined && isDeepStrictEqual([stream.hls, stream.progressive], [hls, progressive]);
}

function verifyFacts({ id, facts }: StreamRecord, stream: Stream, findings: Findings): void {
  for (const name of [
    'fps',
    'duration_s',
    'progressive',
    'hls',
    'poster',
    'thumbnails',
    'captions',
    'audio',
    'chapters',
  ] as const) {
    if (facts[name] !== undefined && !isDeepStrictEqual(facts[name], stream[name]))
      findings.fault(`stream ${id}: its ${name} in the document is not what the ledger says`);
  }
}

/** Nothing that was published may have changed since. Digests are by path relative to media/. */
function verifyHistory(
  records: Map<string, StreamRecord>,
  document: CatalogueDocument,
  digests: Map<string, string>,
  findings: Findings,
): void {
  const streams = new Map(document.streams.map((stream) => [stream.id, stream]));
  for (const { id } of document.streams) {
    const record = records.get(id);
    if (record === undefined) findings.fault(`stream ${id}: is not in the ledger`);
    else if (record.withdrawn) findings.fault(`stream ${id}: was withdrawn and is in the document`);
  }
  const published = new Set<string>();
  for (const record of records.values()) {
    const stream = streams.get(record.id);
    const files = [...record.files].map(([path, file]) => ({ name: path.slice('media/'.length), file }));
    for (const { name } of files) published.add(name);
    if (record.purged) {
      if (files.some(({ name }) => digests.has(name)))
        findings.note(`stream ${record.id}: its purge was cut short; withdraw it again with --purge`);
      continue;
    }
    if (!isFinished(record, stream) && files.some(({ name }) => !digests.has(name))) {
      findings.note(`stream ${record.id}: its publish was cut short; the next build finishes it`);
      continue;
    }
    if (stream !== undefined && isFinished(record, stream)) verifyFacts(record, stream, findings);
    for (const { name, file } of files) {
      if (digests.get(name) !== file.sha256)
        findings.fault(`media/${name}: its digest in SHA256SUMS is not the one it was published with`);
    }
  }
  for (const name of digests.keys()) {
    if (!published.has(name)) findings.fault(`media/${name}: is in SHA256SUMS and was never published`);
  }
}

interface VerifyOptions {
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

/** In one process: it takes longer to start than to decode a short film. */
const DECODED_AT_ONCE = 8;

function decode(site: string, decoder: Ffmpeg, paths: string[], signal?: AbortSignal): Promise<unknown> {
  const inputs = paths.flatMap((path) => ['-threads', paths.length > 1 ? '2' : '0', ...inputOf(join(site, path))]);
  const maps = paths.flatMap((_, i) => ['-map', `${i}:v`, '-map', `${i}:a?`, '-f', 'null', '-']);
  return runFfmpeg(decoder, ['-v', 'error', '-xerror', ...inputs, ...maps], { signal });
}

/** Everything that players decode, several files at a time; each by itself where one of them has a fault. */
async function decodeMedia({ options, document, findings }: Site, decoder: Ffmpeg): Promise<void> {
  const { paths, signal } = options;
  const played = (document?.streams ?? []).flatMap(({ progressive, hls }) => [
    ...Object.values(progressive),
    ...(hls === null ? [] : [hls]),
  ]);
  const ownFault = (path: string) => (error: Error) => {
    signal?.throwIfAborted();
    findings.fault(`${path.slice(1)}: cannot be decoded: ${error.message}`);
  };
  for (let from = 0; from < played.length; from += DECODED_AT_ONCE) {
    const group = played.slice(from, from + DECODED_AT_ONCE);
    const isFine = await decode(paths.site, decoder, group, signal).then(
      () => true,
      () => false,
    );
    if (!isFine) for (const path of group) await decode(paths.site, decoder, [path], signal).catch(ownFault(path));
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
  if (options.decoder !== undefined) await decodeMedia(site, options.decoder);
  await verifyListing(site);
  if (document !== null) {
    verifyNamed(document, digests, findings);
    const { lines } = await readLedger(options.paths.ledger);
    const tombstones = await readTombstones(options.paths);
    const forgotten = forgottenLines(foldLedger(lines), tombstones);
    for (const { id } of forgotten)
      findings.note(`stream ${id}: was withdrawn, and the ledger has forgotten it; the next build adds it`);
    if (lines.length > 0) verifyHistory(foldLedger([...lines, ...forgotten]), document, digests, findings);
  }
  return { faults: findings.faults, notes: findings.notes, files: digests.size, bytes };
}
