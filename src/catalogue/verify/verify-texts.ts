// The texts of a site that are not media: the document, the health file, the checksums and the gallery.
import { type CatalogueDocument, documentFaults } from '../document.ts';
import { DOCUMENT_PATH, HEALTH_BYTES, HEALTH_PATH, SUMS_PATH } from '../site-paths.ts';
import { parseSums } from '../sums.ts';
import type { FilesOnce } from './files-once.ts';
import type { Findings } from './finding.ts';

export function readDocument(files: FilesOnce, findings: Findings): CatalogueDocument | null {
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

export function readSums(files: FilesOnce, findings: Findings): Map<string, string> {
  const bytes = files.find(SUMS_PATH);
  if (bytes === null) findings.fault(`${SUMS_PATH}: does not exist`);
  const { digests, faults } = parseSums(bytes?.toString('utf8') ?? '');
  if (bytes !== null && bytes.length > 0) for (const fault of faults) findings.fault(`${SUMS_PATH}: ${fault}`);
  return digests;
}

export function verifyHealth(files: FilesOnce, findings: Findings): void {
  if (files.find(HEALTH_PATH)?.toString('latin1') !== HEALTH_BYTES)
    findings.fault(`${HEALTH_PATH}: is not the three bytes "ok\\n"`);
}

/** Every path that the document names has to be media, and in the checksums. */
export function verifyNamed(document: CatalogueDocument, digests: Map<string, string>, findings: Findings): void {
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
