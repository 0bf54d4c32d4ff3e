// catalogue.yaml → a checked Manifest. Every mistake is reported, each with its path in the file.
import { resolve } from 'node:path';
import { type Static, type TSchema, Type } from 'typebox';
import { parseDocument } from 'yaml';
import { CatalogueError } from './catalogue-error.ts';
import { languageTag } from './media/describe-input.ts';
import { type Fault, faultsIn, numberFaults } from './schema-faults.ts';

const presets = ['ultrafast', 'superfast', 'veryfast', 'faster', 'fast', 'medium', 'slow', 'slower'] as const;
export type Preset = (typeof presets)[number];

const MAX_MANIFEST_BYTES = 16 * 1024 * 1024;
const MAX_STREAMS = 50_000;
const MAX_RENDITIONS = 32;
const MOST_FAULTS = 100;

const mapping = { additionalProperties: false, fault: 'must be a mapping' };
const list = (maxItems: number) => ({ maxItems, fault: 'must be a list' });
const Whole = (minimum: number, maximum: number) =>
  Type.Integer({ minimum, maximum, fault: `must be a whole number from ${minimum} to ${maximum}` });
const Matching = (pattern: RegExp, fault: string) => Type.String({ pattern, fault });
/** A key without a value is null in YAML: the same as a key that is left out. */
const OrNull = <T extends TSchema & { type: string }>(schema: T) =>
  Type.Optional(Type.Unsafe<Static<T> | null>({ ...schema, type: [schema.type, 'null'] }));

/** YAML 1.2 knows true and false; people write yes and no. */
const YesOrNo = Type.Optional(
  Type.Unsafe<boolean | 'yes' | 'no' | null>({ enum: [true, false, 'yes', 'no', null], fault: 'must be yes or no' }),
);

const Rendition = Type.Object(
  {
    label: Matching(/^[a-z0-9][a-z0-9_-]{0,31}$/, 'must be 1 to 32 of a-z, 0-9, - and _, such as 720p'),
    width: Whole(16, 8192),
    height: Whole(16, 8192),
    video_kbps: Whole(16, 200_000),
    audio_kbps: Whole(16, 512),
  },
  mapping,
);

const LANGUAGE_FAULT = 'must be a language tag such as en or pt-BR';
const deinterlace = ['single', 'double'] as const;
export type Deinterlace = (typeof deinterlace)[number];

const Language = Matching(/^[A-Za-z0-9-]{2,35}$/, LANGUAGE_FAULT);
const SourceFile = Matching(/^[^\0]{1,4096}$/, 'must name a file');
const NAME = Matching(/^[^\0-\x1f\x7f"]{1,100}$/, 'must be 1 to 100 characters, without quotation marks');
const MOST_TRACKS = 64;

const Caption = Type.Object(
  { source: SourceFile, language: Language, name: OrNull(NAME), default: YesOrNo, forced: YesOrNo },
  mapping,
);

const WrittenStream = Type.Object(
  {
    id: Matching(/^[a-z0-9][a-z0-9_-]{0,63}$/, 'must be 1 to 64 of a-z, 0-9, - and _, starting with a letter or digit'),
    title: Matching(/^[^\0-\x1f\x7f]{1,200}$/, 'must be 1 to 200 characters'),
    source: SourceFile,
    progressive: OrNull(Type.Array(Type.Unsafe<string>({}), list(MAX_RENDITIONS))),
    hls: YesOrNo,
    interlaced: YesOrNo,
    deinterlace: Type.Optional(
      Type.Unsafe<Deinterlace | null>({ enum: [...deinterlace, null], fault: `must be ${deinterlace.join(' or ')}` }),
    ),
    language: OrNull(Language),
    captions: OrNull(Type.Array(Caption, list(MOST_TRACKS))),
    audio: OrNull(Type.Array(Language, list(MOST_TRACKS))),
    chapters: OrNull(SourceFile),
    loudness: OrNull(Type.Number({ minimum: -40, maximum: -8, fault: 'must be a number from -40 to -8, in LUFS' })),
    allow_damaged: YesOrNo,
    fields: OrNull(Type.Record(Type.String(), Type.Unknown(), { fault: 'must be a mapping' })),
  },
  mapping,
);

const WrittenManifest = Type.Object(
  {
    version: Type.Optional(Whole(2, 1_000_000)),
    preset: Type.Optional(
      Type.Unsafe<Preset | null>({ enum: [...presets, null], fault: `must be one of ${presets.join(', ')}` }),
    ),
    renditions: Type.Array(Rendition, list(MAX_RENDITIONS)),
    streams: OrNull(Type.Array(WrittenStream, list(MAX_STREAMS))),
  },
  mapping,
);

export type Rendition = Static<typeof Rendition>;

/** A file that the manifest names: where it lies, and what it is called there. */
export interface NamedFile {
  path: string;
  name: string;
}

export interface CaptionEntry {
  source: NamedFile;
  language: string;
  /** As viewers choose it; null: the name of the language. */
  name: string | null;
  isDefault: boolean;
  isForced: boolean;
}

export interface StreamEntry {
  id: string;
  title: string;
  /** Absolute path of the source video. */
  source: string;
  /** The same as the manifest names it: what messages say. */
  sourceName: string;
  /** Labels of the renditions to make as progressive files. */
  progressive: string[];
  hls: boolean;
  /** Overrides what was detected in the source; null: does not. */
  interlaced: boolean | null;
  /** One picture for each frame of an interlaced source, or for each of its fields. */
  deinterlace: Deinterlace;
  /** Of the sound, instead of what the source says; null: as the source says. */
  language: string | null;
  allowDamaged: boolean;
  captions: CaptionEntry[];
  /** Languages of the sound, the main one first; null: every track of the source. */
  audio: string[] | null;
  chapters: NamedFile | null;
  /** Target in LUFS; null: as loud as the source. */
  loudness: number | null;
  /** Added fields, copied into the document. */
  fields: Record<string, unknown>;
}

export interface Manifest {
  version: number;
  preset: Preset;
  renditions: Rendition[];
  streams: StreamEntry[];
}

const FIELD = /^[a-z][a-z0-9_]{0,63}$/;
/** Fields that the catalogue sets itself; a manifest cannot add them. */
const ownStreamFields = ['id', 'title', 'fps', 'duration_s', 'progressive', 'hls', 'poster', 'thumbnails'];

const fieldsOf = (value: unknown): Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : {};
const itemsOf = (value: unknown): unknown[] => (Array.isArray(value) ? value : []);
const isNo = (value: unknown): boolean => value === false || value === 'no';

function twice(values: unknown[], path: string): Fault[] {
  const seen = new Set<unknown>();
  const repeated = values.filter((value) => typeof value === 'string' && seen.size === seen.add(value).size);
  return repeated.map((value) => ({ path, message: `"${value}" is there twice` }));
}

function trackFaults({ captions, audio, fields }: Record<string, unknown>, path: string): Fault[] {
  const faults: Fault[] = [];
  const named = itemsOf(captions).map(fieldsOf);
  for (const [i, { language }] of named.entries())
    if (typeof language === 'string' && languageTag(language) === null)
      faults.push({ path: `${path}.captions[${i}].language`, message: LANGUAGE_FAULT });
  if (named.filter((caption) => caption.default !== undefined && !isNo(caption.default ?? false)).length > 1)
    faults.push({ path: `${path}.captions`, message: 'only one can be the default' });
  for (const language of itemsOf(audio))
    if (typeof language === 'string' && languageTag(language) === null)
      faults.push({ path: `${path}.audio`, message: LANGUAGE_FAULT });
  faults.push(...twice(itemsOf(audio), `${path}.audio`));
  const own = { captions, audio };
  for (const [name, value] of Object.entries(own))
    if (value != null && Object.hasOwn(fieldsOf(fields), name))
      faults.push({ path: `${path}.fields`, message: `"${name}" is one of the catalogue's own fields` });
  return faults;
}

function streamFaults(value: unknown, path: string, labels: unknown[]): Fault[] {
  const { progressive, hls, language, fields } = fieldsOf(value);
  const unknown = itemsOf(progressive).filter((label) => !labels.includes(label));
  const faults = unknown.map((label): Fault => {
    return { path: `${path}.progressive`, message: `"${String(label)}" is not a label of renditions` };
  });
  faults.push(...twice(itemsOf(progressive), `${path}.progressive`));
  if (typeof language === 'string' && languageTag(language) === null)
    faults.push({ path: `${path}.language`, message: LANGUAGE_FAULT });
  faults.push(...trackFaults(fieldsOf(value), path));
  if (isNo(hls) && itemsOf(progressive).length === 0)
    faults.push({ path, message: 'has neither progressive files nor HLS' });
  faults.push(...numberFaults(fieldsOf(fields), `${path}.fields`));
  for (const name of Object.keys(fieldsOf(fields))) {
    const at = `${path}.fields`;
    if (!FIELD.test(name)) faults.push({ path: at, message: `"${name}" must be snake_case` });
    if (ownStreamFields.includes(name))
      faults.push({ path: at, message: `"${name}" is one of the catalogue's own fields` });
  }
  return faults;
}

/** What no schema can say: names that have to be unique, or to be named elsewhere in the manifest. */
function referenceFaults(value: unknown): Fault[] {
  const { renditions, streams } = fieldsOf(value);
  const labels = itemsOf(renditions).map((each) => fieldsOf(each).label);
  const ids = itemsOf(streams).map((each) => fieldsOf(each).id);
  return [
    ...twice(labels, 'renditions'),
    ...(labels.length === 0 ? [{ path: 'renditions', message: 'must name at least one' }] : []),
    ...itemsOf(streams).flatMap((stream, i) => streamFaults(stream, `streams[${i}]`, labels)),
    ...twice(ids, 'streams'),
  ];
}

const yes = (value: boolean | 'yes' | 'no'): boolean => !isNo(value);

function entryOf(stream: Static<typeof WrittenStream>, folder: string): StreamEntry {
  const { id, title, source, progressive, hls, interlaced, fields } = stream;
  const { deinterlace, language, allow_damaged, captions, audio, chapters, loudness } = stream;
  const named = (name: string): NamedFile => ({ path: resolve(folder, name), name });
  return {
    id,
    title,
    source: resolve(folder, source),
    sourceName: source,
    progressive: progressive ?? [],
    hls: yes(hls ?? true),
    interlaced: interlaced == null ? null : yes(interlaced),
    deinterlace: deinterlace ?? 'single',
    language: languageTag(language ?? undefined),
    allowDamaged: yes(allow_damaged ?? false),
    captions: (captions ?? []).map((caption) => ({
      source: named(caption.source),
      language: languageTag(caption.language)!,
      name: caption.name ?? null,
      isDefault: yes(caption.default ?? false),
      isForced: yes(caption.forced ?? false),
    })),
    audio: audio?.map((each) => languageTag(each)!) ?? null,
    chapters: chapters == null ? null : named(chapters),
    loudness: loudness ?? null,
    fields: fields ?? {},
  };
}

/** Aliases that stand for aliases multiply: a small file could fill the memory. */
function resolveAliases(yaml: ReturnType<typeof parseDocument>): unknown {
  try {
    return yaml.toJS({ maxAliasCount: 100 });
  } catch (error) {
    // Also an alias without an anchor, or one within its own anchor.
    throw new CatalogueError(`the manifest has aliases that cannot be resolved: ${(error as Error).message}`);
  }
}

/** Parses and checks a manifest; relative sources are taken from `folder`. Throws a CatalogueError with every mistake. */
export function parseManifest(text: string, folder: string): Manifest {
  if (Buffer.byteLength(text) > MAX_MANIFEST_BYTES) throw new CatalogueError('the manifest is larger than 16 MiB');
  const yaml = parseDocument(text, { schema: 'core' });
  if (yaml.errors.some(({ message }) => message.startsWith('Maximum call stack'))) {
    throw new CatalogueError('the manifest is nested too deep');
  }
  if (yaml.errors.length > 0) throw new CatalogueError(yaml.errors.slice(0, 10).map((error) => error.message));
  const value = resolveAliases(yaml);
  const faults = [...faultsIn(WrittenManifest, value, MOST_FAULTS), ...referenceFaults(value)];
  if (faults.length > 0)
    throw new CatalogueError(
      faults.slice(0, MOST_FAULTS).map(({ path, message }) => `${path || 'manifest'}: ${message}`),
    );
  const { version = 2, preset, renditions, streams } = value as Static<typeof WrittenManifest>;
  return {
    version,
    preset: preset ?? 'medium',
    renditions,
    streams: (streams ?? []).map((stream) => entryOf(stream, folder)),
  };
}
