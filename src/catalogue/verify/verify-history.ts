// The site against its ledger: nothing that was published may have changed since.
import { isDeepStrictEqual } from 'node:util';
import type { CatalogueDocument, Stream } from '../document.ts';
import type { StreamRecord } from '../ledger.ts';
import type { Findings } from './finding.ts';

/** Whether the document agrees with the ledger on a stream; where it does not, a publish or withdrawal was interrupted. */
function isFinished({ facts: { hls, progressive } }: StreamRecord, stream: Stream | undefined): boolean {
  return stream !== undefined && isDeepStrictEqual([stream.hls, stream.progressive], [hls, progressive]);
}

function verifyFacts({ id, facts }: StreamRecord, stream: Stream, findings: Findings): void {
  for (const name of ['fps', 'duration_s', 'progressive', 'hls', 'poster', 'thumbnails'] as const) {
    if (facts[name] !== undefined && !isDeepStrictEqual(facts[name], stream[name]))
      findings.fault(`stream ${id}: its ${name} in the document is not what the ledger says`);
  }
}

/** Digests are by path relative to media/. */
export function verifyHistory(
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
