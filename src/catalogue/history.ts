// Ids are for ever. Given what the ledger knows of an id and what the manifest now wants of it, decides whether the
// published files stand, what has to be encoded in addition, or why the publish must stop. No I/O.
import type { StreamRecord } from './ledger.ts';
import type { Rendition } from './manifest.ts';

interface RequestedStream {
  id: string;
  /** Null where the source is gone or cannot be read: then only what is published can be kept. */
  sourceSha256: string | null;
  progressive: Rendition[];
  /** The whole ladder, or null for a stream without HLS. */
  hls: Rendition[] | null;
  /** Captions, sound and chapters that are asked for; null where their files cannot be read. */
  asked: string | null;
}

export type Verdict =
  | { kind: 'keep' }
  | { kind: 'encode'; progressive: Rendition[]; hls: Rendition[] | null; extras: boolean }
  | { kind: 'refuse'; reasons: string[] };

const sameRendition = (a: Rendition, b: Rendition) =>
  a.label === b.label &&
  a.width === b.width &&
  a.height === b.height &&
  a.video_kbps === b.video_kbps &&
  a.audio_kbps === b.audio_kbps;

function changedRenditions(record: StreamRecord, requested: RequestedStream): string[] {
  const reasons: string[] = [];
  for (const [label, published] of record.progressive) {
    const now = requested.progressive.find((rendition) => rendition.label === label);
    if (now === undefined) reasons.push(`its progressive file ${label} is published and cannot be taken away`);
    else if (!sameRendition(published, now)) reasons.push(`its rendition ${label} is published with other numbers`);
  }
  if (record.hls === null) return reasons;
  if (requested.hls === null) return [...reasons, 'its HLS is published and cannot be taken away'];
  for (const published of record.hls) {
    const now = requested.hls.find((rendition) => rendition.label === published.label);
    if (now === undefined) reasons.push(`rendition ${published.label} is in its HLS ladder and cannot be taken away`);
    else if (!sameRendition(published, now))
      reasons.push(`rendition ${published.label} is published with other numbers`);
  }
  return reasons;
}

export function judge(record: StreamRecord | undefined, requested: RequestedStream): Verdict {
  const refuse = (reasons: string[]): Verdict => ({
    kind: 'refuse',
    reasons: [...new Set(reasons)].map((reason) => `stream ${requested.id}: ${reason}`),
  });
  if (record === undefined)
    return { kind: 'encode', progressive: requested.progressive, hls: requested.hls, extras: true };
  if (record.withdrawn) return refuse(['this id was withdrawn and cannot be used again; choose another']);
  const reasons = changedRenditions(record, requested);
  if (requested.sourceSha256 !== null && requested.sourceSha256 !== record.sourceSha256)
    reasons.unshift('this id was published from another source; give the new content a new id');
  if (requested.asked !== null && requested.asked !== record.asked)
    reasons.push(
      'its captions, audio, chapters and loudness were settled when it was published; changes need a new id',
    );
  if (reasons.length > 0) return refuse(reasons);
  const progressive = requested.progressive.filter(
    (rendition) => !record.progressive.has(rendition.label) && !record.leftOut.has(rendition.label),
  );
  const hls = record.hls === null ? requested.hls : null;
  if (progressive.length === 0 && hls === null) return { kind: 'keep' };
  return { kind: 'encode', progressive, hls, extras: false };
}

/** Ids that are published and that the manifest no longer names. */
export function missingIds(records: Map<string, StreamRecord>, ids: Set<string>): string[] {
  return [...records.values()]
    .filter((record) => !record.withdrawn && !ids.has(record.id))
    .map(
      (record) =>
        `stream ${record.id}: is published and not in the manifest; withdraw it with: sluice catalogue withdraw ${record.id}`,
    );
}
