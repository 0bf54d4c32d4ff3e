// What is about to be published, checked by the code that checks a site, while it is still staged: a fault found here costs
// an encode, a fault found later is published for ever.
import { join } from 'node:path';
import type { CatalogueDocument } from '../document.ts';
import type { PublishLine } from '../ledger.ts';
import { FilesOnce } from './files-once.ts';
import { FindingList } from './finding.ts';
import { verifyDigests, verifyForms } from './verify-files.ts';
import { verifyStream } from './verify-stream.ts';

export interface StagedFiles {
  line: PublishLine;
  /** Where the stream's files lie, by their paths below `media/<id>/`. */
  folder: string;
}

export interface StageFaults {
  folder: string;
  faults: string[];
}

/** The streams that must not be published as they are; of a stream that gains something, only what is new is looked at. */
export async function verifyStage(
  staged: StagedFiles[],
  document: CatalogueDocument,
  signal?: AbortSignal,
): Promise<StageFaults[]> {
  const damaged: StageFaults[] = [];
  const renditions = new Map(document.renditions.map((rendition) => [rendition.label, rendition]));
  const streams = new Map(document.streams.map((stream) => [stream.id, stream]));
  for (const { line, folder } of staged) {
    signal?.throwIfAborted();
    const findings = new FindingList();
    const files = new FilesOnce((path) => join(folder, path.slice(`media/${line.id}/`.length)));
    const paths = Object.keys(line.files);
    const digests = Object.entries(line.files).map(([path, { sha256 }]) => [path, sha256] as const);
    await verifyDigests(files, digests, 'staging', findings, signal);
    verifyForms(files, paths, findings);
    const stream = streams.get(line.id);
    if (stream !== undefined) await verifyStream(files, stream, renditions, findings, (path) => path in line.files);
    if (findings.faults.length > 0) damaged.push({ folder, faults: findings.faults });
  }
  return damaged;
}
