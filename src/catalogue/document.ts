// The catalogue document (api/streams.json): its frozen version 2 shape, and how it is made from what is published.
import type { Manifest, Rendition } from './manifest.ts';

export interface Stream {
  id: string;
  title: string;
  fps: number;
  duration_s: number;
  progressive: Record<string, string>;
  hls: string | null;
  poster?: string;
  thumbnails?: string;
  [added: string]: unknown;
}

export interface CatalogueDocument {
  version: number;
  updated: string;
  renditions: Rendition[];
  streams: Stream[];
}

/** What the ledger knows of a published stream and the document tells. */
export interface StreamFacts {
  fps: number;
  duration_s: number;
  progressive: Record<string, string>;
  hls: string | null;
  poster: string;
  thumbnails: string;
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

/** Whether two documents say the same, whenever they were made. */
export function sameContent(a: CatalogueDocument, b: CatalogueDocument): boolean {
  return JSON.stringify({ ...a, updated: '' }) === JSON.stringify({ ...b, updated: '' });
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
const isDate = (value: unknown) =>
  typeof value === 'string' && /^\d{4}-\d\d-\d\d$/.test(value) && !Number.isNaN(Date.parse(value));

/** A path that a client may prefix with an origin: from the root, without a step up, a query or an empty segment. */
export function isRootRelativePath(value: unknown): value is string {
  if (typeof value !== 'string' || !/^\/[^\s\\?#%]+$/.test(value)) return false;
  return value
    .slice(1)
    .split('/')
    .every((segment) => segment !== '' && !segment.startsWith('.'));
}

function renditionFaults(value: unknown, place: string): string[] {
  if (!isObject(value)) return [`${place} is not an object`];
  const faults = typeof value.label === 'string' && value.label !== '' ? [] : [`${place}.label is not a string`];
  for (const name of ['width', 'height', 'video_kbps', 'audio_kbps']) {
    if (!Number.isInteger(value[name]) || Number(value[name]) < 0) faults.push(`${place}.${name} is not an integer`);
  }
  return faults;
}

function streamFaults(value: unknown, place: string, labels: Set<unknown>): string[] {
  if (!isObject(value)) return [`${place} is not an object`];
  const faults: string[] = [];
  if (typeof value.id !== 'string' || value.id === '') faults.push(`${place}.id is not a string`);
  if (typeof value.title !== 'string') faults.push(`${place}.title is not a string`);
  for (const name of ['fps', 'duration_s']) {
    if (!Number.isFinite(value[name]) || Number(value[name]) <= 0) faults.push(`${place}.${name} is not a number`);
  }
  if (value.hls !== null && !isRootRelativePath(value.hls)) faults.push(`${place}.hls is not a root-relative path`);
  if (!isObject(value.progressive)) return [...faults, `${place}.progressive is not an object`];
  for (const [label, path] of Object.entries(value.progressive)) {
    if (!labels.has(label)) faults.push(`${place}.progressive has the label ${label}, which renditions do not have`);
    if (!isRootRelativePath(path)) faults.push(`${place}.progressive.${label} is not a root-relative path`);
  }
  return faults;
}

/** Everything in which a value departs from the frozen shape of version 2. Added fields are not looked at. */
export function documentFaults(value: unknown): string[] {
  if (!isObject(value)) return ['the document is not an object'];
  const faults: string[] = [];
  if (!Number.isInteger(value.version) || Number(value.version) < 1) faults.push('version is not an integer');
  if (!isDate(value.updated)) faults.push('updated is not a date of the form YYYY-MM-DD');
  if (!Array.isArray(value.renditions)) faults.push('renditions is not an array');
  if (!Array.isArray(value.streams)) faults.push('streams is not an array');
  if (faults.length > 0) return faults;
  const renditions = value.renditions as unknown[];
  const streams = value.streams as unknown[];
  const labels = new Set(renditions.filter(isObject).map((rendition) => rendition.label));
  if (labels.size !== renditions.length) faults.push('renditions has a label twice');
  faults.push(...renditions.flatMap((rendition, i) => renditionFaults(rendition, `renditions[${i}]`)));
  faults.push(...streams.flatMap((stream, i) => streamFaults(stream, `streams[${i}]`, labels)));
  const ids = new Set(streams.filter(isObject).map((stream) => stream.id));
  if (ids.size !== streams.length) faults.push('streams has an id twice');
  return faults;
}
