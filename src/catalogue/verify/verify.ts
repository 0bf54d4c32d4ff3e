// sluice catalogue verify: re-checks everything a client relies on, from the files alone; with the ledger beside the site,
// also that nothing published was changed since. Reports every fault it finds.
import { lstat, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import { type CatalogueDocument, documentFaults } from '../document.ts';
import { codeOf } from '../fault.ts';
import { forEachAtOnce, hashFile, listFiles } from '../files.ts';
import { foldLedger, readLedger, type StreamRecord } from '../ledger.ts';
import { type Ffmpeg, inputOf, runFfmpeg } from '../media/ffmpeg.ts';
import { DOCUMENT_PATH, HEALTH_BYTES, HEALTH_PATH, SUMS_PATH } from '../publish.ts';
import type { SitePaths } from '../site-paths.ts';
import { parseSums } from '../sums.ts';
import { FindingList } from './finding.ts';
import { verifyHls } from './verify-hls.ts';
import { verifyPictures, verifyProgressive } from './verify-stream.ts';

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

async function readDocument(site: string, findings: FindingList): Promise<CatalogueDocument | null> {
  try {
    const document: unknown = JSON.parse(await readFile(join(site, DOCUMENT_PATH), 'utf8'));
    const faults = documentFaults(document);
    for (const fault of faults) findings.fault(`${DOCUMENT_PATH}: ${fault}`);
    return faults.length === 0 ? (document as CatalogueDocument) : null;
  } catch (error) {
    if (!(error instanceof SyntaxError) && codeOf(error) !== 'ENOENT') throw error;
    findings.fault(`${DOCUMENT_PATH}: ${error instanceof SyntaxError ? 'is not JSON' : 'does not exist'}`);
    return null;
  }
}

async function readSums(site: string, findings: FindingList): Promise<Map<string, string>> {
  const text = await readFile(join(site, SUMS_PATH), 'utf8').catch(() => null);
  if (text === null) findings.fault(`${SUMS_PATH}: does not exist`);
  const { digests, faults } = parseSums(text ?? '');
  if (text !== null && text !== '') for (const fault of faults) findings.fault(`${SUMS_PATH}: ${fault}`);
  return digests;
}

async function verifyDigests(
  options: VerifyOptions,
  digests: Map<string, string>,
  findings: FindingList,
): Promise<number> {
  let bytes = 0;
  // Two at a time: one is hashed while the other waits for the disk.
  await forEachAtOnce([...digests], 2, async ([name, digest]) => {
    const path = join(options.paths.site, 'media', name);
    const facts = await lstat(path).catch(() => null);
    if (facts === null) return findings.fault(`media/${name}: does not exist`);
    if (!facts.isFile()) return findings.fault(`media/${name}: is not a plain file`);
    const { sha256, size } = await hashFile(path, options.signal);
    bytes += size;
    if (sha256 !== digest) findings.fault(`media/${name}: its digest is not the one in SHA256SUMS`);
  });
  return bytes;
}

async function verifyCompressed(site: string, findings: FindingList): Promise<void> {
  for (const name of await listFiles(site)) {
    const unpack = name.endsWith('.br') ? brotliDecompressSync : name.endsWith('.gz') ? gunzipSync : null;
    if (unpack === null) continue;
    try {
      const [packed, plain] = await Promise.all([readFile(join(site, name)), readFile(join(site, name.slice(0, -3)))]);
      if (!unpack(packed).equals(plain)) findings.fault(`${name}: is not the compressed form of ${name.slice(0, -3)}`);
    } catch {
      findings.fault(`${name}: cannot be unpacked, or what it was made of is missing`);
    }
  }
}

function verifyNamed(document: CatalogueDocument, digests: Map<string, string>, findings: FindingList): void {
  for (const stream of document.streams) {
    const { poster, thumbnails, hls } = stream;
    for (const path of [...Object.values(stream.progressive), hls, poster, thumbnails]) {
      if (typeof path !== 'string') continue;
      if (!path.startsWith('/media/')) findings.fault(`stream ${stream.id}: ${path} is not under /media/`);
      else if (!digests.has(path.slice('/media/'.length))) findings.fault(`${path.slice(1)}: is not in SHA256SUMS`);
    }
  }
}

/** Whether the document agrees with the ledger on a stream; where it does not, a publish or withdrawal was interrupted. */
function isFinished(record: StreamRecord, document: CatalogueDocument): boolean {
  const stream = document.streams.find((each) => each.id === record.id);
  const { hls, progressive } = record.facts;
  return stream !== undefined && isDeepStrictEqual([stream.hls, stream.progressive], [hls, progressive]);
}

function verifyHistory(
  records: Map<string, StreamRecord>,
  document: CatalogueDocument,
  digests: Map<string, string>,
  findings: FindingList,
): void {
  for (const stream of document.streams) {
    const record = records.get(stream.id);
    if (record === undefined) findings.fault(`stream ${stream.id}: is not in the ledger`);
    else if (record.withdrawn) findings.fault(`stream ${stream.id}: was withdrawn and is in the document`);
  }
  for (const record of records.values()) {
    if (record.purged) continue;
    const files = [...record.files].map(([path, file]) => ({
      path,
      file,
      listed: digests.get(path.slice('media/'.length)),
    }));
    if (!isFinished(record, document) && files.some(({ listed }) => listed === undefined)) {
      findings.note(`stream ${record.id}: its publish was cut short; the next build finishes it`);
      continue;
    }
    for (const { path, file, listed } of files) {
      if (listed !== file.sha256)
        findings.fault(`${path}: its digest in SHA256SUMS is not the one it was published with`);
    }
  }
}

async function verifyStreams(
  options: VerifyOptions,
  document: CatalogueDocument,
  findings: FindingList,
): Promise<void> {
  const { site } = options.paths;
  const renditions = new Map(document.renditions.map((rendition) => [rendition.label, rendition]));
  for (const stream of document.streams) {
    options.signal?.throwIfAborted();
    for (const [label, path] of Object.entries(stream.progressive))
      await verifyProgressive(site, stream, renditions.get(label)!, path.slice(1), findings);
    if (stream.hls !== null) await verifyHls(site, stream, findings);
    await verifyPictures(site, stream, findings);
    if (options.decoder === undefined) continue;
    for (const path of [...Object.values(stream.progressive), ...(stream.hls === null ? [] : [stream.hls])]) {
      const args = ['-v', 'error', '-xerror', ...inputOf(join(site, path)), '-map', '0', '-f', 'null', '-'];
      await runFfmpeg(options.decoder, args, { signal: options.signal }).catch((error: Error) =>
        findings.fault(`${path.slice(1)}: cannot be decoded: ${error.message}`),
      );
    }
  }
}

export async function verifySite(options: VerifyOptions): Promise<VerifyResult> {
  const { site, ledger } = options.paths;
  const findings = new FindingList();
  const document = await readDocument(site, findings);
  const health = await readFile(join(site, HEALTH_PATH)).catch(() => null);
  if (health?.toString('latin1') !== HEALTH_BYTES) findings.fault(`${HEALTH_PATH}: is not the three bytes "ok\\n"`);
  const digests = await readSums(site, findings);
  const bytes = await verifyDigests(options, digests, findings);
  await verifyCompressed(site, findings);
  for (const name of await listFiles(join(site, 'media'))) {
    if (!digests.has(name) && !name.startsWith('SHA256SUMS')) findings.note(`media/${name}: is not in SHA256SUMS`);
  }
  if (document !== null) {
    verifyNamed(document, digests, findings);
    const { lines } = await readLedger(ledger);
    if (lines.length > 0) verifyHistory(foldLedger(lines), document, digests, findings);
    await verifyStreams(options, document, findings);
  }
  return { faults: findings.faults, notes: findings.notes, files: digests.size, bytes };
}
