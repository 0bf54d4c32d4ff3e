// The catalogue document (api/streams.json): its frozen version 2 shape, and how it is made from what is published.
import { type Static, Type } from 'typebox';
import type { Manifest } from './manifest.ts';
import { faultsIn } from './schema-faults.ts';

/** A path that a client may prefix with an origin: from the root, without a step up, a query or an empty segment. */
const ROOT_RELATIVE = /^(?:\/[^\s\\?#%/.][^\s\\?#%/]*)+$/;

const text = { fault: 'is not a string' };
const Count = Type.Integer({ minimum: 0, fault: 'is not an integer' });
const Positive = Type.Number({ exclusiveMinimum: 0, fault: 'is not a number' });
const Path = Type.String({ pattern: ROOT_RELATIVE, fault: 'is not a root-relative path' });

const Rendition = Type.Object(
  {
    label: Type.String({ minLength: 1, ...text }),
    width: Count,
    height: Count,
    video_kbps: Count,
    audio_kbps: Count,
  },
  { fault: 'is not an object' },
);

const Stream = Type.Object(
  {
    id: Type.String({ minLength: 1, ...text }),
    title: Type.String(text),
    fps: Positive,
    duration_s: Positive,
    progressive: Type.Record(Type.String(), Path, { fault: 'is not an object' }),
    hls: Type.Union([Path, Type.Null()], { fault: 'is not a root-relative path' }),
  },
  { fault: 'is not an object' },
);

const isDay = (value: string) => !Number.isNaN(Date.parse(value));

/** Fields that were added to version 2 are allowed everywhere, and not checked. */
const Document = Type.Object(
  {
    version: Type.Integer({ minimum: 1, fault: 'is not an integer' }),
    updated: Type.Refine(
      Type.String({ pattern: /^\d{4}-\d\d-\d\d$/, fault: 'is not a date of the form YYYY-MM-DD' }),
      isDay,
    ),
    renditions: Type.Array(Rendition, { fault: 'is not an array' }),
    streams: Type.Array(Stream, { fault: 'is not an array' }),
  },
  { fault: 'is not an object' },
);

export type Stream = Static<typeof Stream> & { poster?: string; thumbnails?: string; [added: string]: unknown };
export type CatalogueDocument = Omit<Static<typeof Document>, 'streams'> & { streams: Stream[] };

/** The fields of a stream in the document that come from the ledger, not from the manifest. */
export interface StreamFacts {
  fps: number;
  duration_s: number;
  progressive: Record<string, string>;
  hls: string | null;
  poster: string;
  thumbnails: string;
  /** WebVTT, whole. */
  captions?: { language: string; name: string; default: boolean; forced: boolean; path: string }[];
  /** Of the largest picture; not in what was published before there were these two. */
  width?: number;
  height?: number;
  /** Size of each progressive file. */
  bytes?: Record<string, number>;
  /** The main one first; only where viewers have a choice, or the language is known. */
  audio?: { language: string | null; name: string }[];
  /** A WebVTT track of chapters. */
  chapters?: string;
}

export function composeDocument(
  manifest: Manifest,
  factsOf: (id: string) => StreamFacts | undefined,
  updated: string,
): CatalogueDocument {
  const streams = manifest.streams.flatMap((entry): Stream[] => {
    const facts = factsOf(entry.id);
    if (facts === undefined) return [];
    return [{ id: entry.id, title: entry.title, ...facts, ...entry.fields }];
  });
  return { version: manifest.version, updated, renditions: manifest.renditions, streams };
}

export function encodeDocument(document: CatalogueDocument): string {
  return `${JSON.stringify(document, null, 2)}\n`;
}

/** The day of a document: never before that of the published one, whatever the clock says. */
export const laterDay = (published: CatalogueDocument | null, today: string) =>
  published !== null && published.updated > today ? published.updated : today;

/** Whether two documents are equal but for their date. */
export function sameContent(a: CatalogueDocument, b: CatalogueDocument): boolean {
  return JSON.stringify({ ...a, updated: '' }) === JSON.stringify({ ...b, updated: '' });
}

export const isRootRelativePath = (value: unknown): value is string =>
  typeof value === 'string' && ROOT_RELATIVE.test(value);

const MOST_FAULTS = 100_000;

/** Everything in which a value does not match the frozen shape of version 2. */
export function documentFaults(value: unknown): string[] {
  const faults = faultsIn(Document, value, MOST_FAULTS).map(
    ({ path, message }) => `${path === '' ? 'the document' : path} ${message}`,
  );
  return [...faults, ...referenceFaults(value)];
}

const objectsIn = (value: unknown): Record<string, unknown>[] =>
  Array.isArray(value) ? value.map((item) => (typeof item === 'object' && item !== null ? item : {})) : [];

/** What no schema can say: names that have to be unique, or to be named elsewhere in the document. */
function referenceFaults(value: unknown): string[] {
  const { renditions, streams } = (value ?? {}) as { renditions?: unknown; streams?: unknown };
  const labels = new Set(objectsIn(renditions).map(({ label }) => label));
  const faults: string[] = [];
  if (labels.size < objectsIn(renditions).length) faults.push('renditions has a label twice');
  const ids = new Set(objectsIn(streams).map(({ id }) => id));
  if (ids.size < objectsIn(streams).length) faults.push('streams has an id twice');
  if (!Array.isArray(renditions)) return faults;
  for (const [i, { progressive }] of objectsIn(streams).entries()) {
    const named = Array.isArray(progressive) ? [] : Object.keys(progressive ?? {});
    for (const label of named.filter((each) => !labels.has(each)))
      faults.push(`streams[${i}].progressive has the label ${label}, which renditions do not have`);
  }
  return faults;
}
