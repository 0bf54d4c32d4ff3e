// What the ledger notes when a stream is published, or when something is added to one.
import type { StreamFacts } from './document.ts';
import { CatalogueError } from './fault.ts';
import type { PublishLine, StreamRecord } from './ledger.ts';
import { POSTER_NAME, progressiveName } from './media/encode-args.ts';
import { MULTIVARIANT_NAME } from './media/package-hls.ts';
import type { StagedStream } from './staging.ts';

function factsOf(id: string, record: StreamRecord | undefined, staged: StagedStream): StreamFacts {
  const at = (name: string) => `/media/${id}/${name}`;
  const added = staged.encoded.progressive.map(({ label }) => [label, at(progressiveName(label))] as const);
  return {
    // A large rung that is added may show every frame where the small ones show every second.
    fps: Math.max(record?.facts.fps ?? 0, staged.encoded.fps),
    duration_s: record?.facts.duration_s ?? staged.encoded.duration_s,
    progressive: { ...record?.facts.progressive, ...Object.fromEntries(added) },
    hls: record?.facts.hls ?? (staged.encoded.hls === null ? null : at(MULTIVARIANT_NAME)),
    poster: record?.facts.poster ?? at(POSTER_NAME),
    thumbnails: record?.facts.thumbnails ?? at('thumbs.vtt'),
  };
}

interface PublishedFrom {
  id: string;
  sourceSha256: string;
  encoder: string;
  /** When it is published, ISO 8601. */
  at: string;
}

/** The ledger's line for a staged stream; throws where a path would get other content than it has. */
export function publishLine(
  { id, sourceSha256, encoder, at }: PublishedFrom,
  record: StreamRecord | undefined,
  staged: StagedStream,
): PublishLine {
  const files = Object.entries(staged.files).map(([name, file]) => [`media/${id}/${name}`, file] as const);
  const conflict = files.find(([path, file]) => (record?.files.get(path)?.sha256 ?? file.sha256) !== file.sha256);
  if (conflict !== undefined) throw new CatalogueError(`stream ${id}: ${conflict[0]} is published with other content`);
  return {
    type: 'publish',
    at,
    id,
    source_sha256: sourceSha256,
    encoder,
    progressive: staged.encoded.progressive,
    hls: staged.encoded.hls,
    left_out: staged.encoded.leftOut,
    facts: factsOf(id, record, staged),
    files: Object.fromEntries(files),
  };
}
