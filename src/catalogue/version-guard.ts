// The version rule of the specification: `version` rises only when a field is removed or changes meaning, and adding a
// field never changes it. The guard compares what is about to be published with what clients have been shown.
import { type CatalogueDocument, documentFaults } from './document.ts';

type JsonType = 'null' | 'array' | 'object' | 'string' | 'number' | 'boolean';

function typeOf(value: unknown): JsonType {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'array';
  return typeof value as JsonType;
}

/** The specification gives these more than one type. */
const eitherType: Record<string, JsonType[]> = { hls: ['string', 'null'] };

function compareFields(before: object, after: object, place: string): string[] {
  const next = after as Record<string, unknown>;
  return Object.entries(before).flatMap(([name, value]) => {
    if (!(name in next)) return [`${place}${name} was removed`];
    const [was, is] = [typeOf(value), typeOf(next[name])];
    const both = eitherType[name];
    if (was === is || (both?.includes(was) && both.includes(is))) return [];
    return [`${place}${name} was ${was} and is now ${is}`];
  });
}

function compareLists<T extends object>(before: T[], after: T[], key: (item: T) => string, name: string): string[] {
  const next = new Map(after.map((item) => [key(item), item]));
  return before.flatMap((item) => {
    const now = next.get(key(item));
    return now === undefined ? [] : compareFields(item, now, `${name} ${key(item)}: `);
  });
}

/** Why the next document may not follow the published one; empty where it may. */
export function versionFaults(published: CatalogueDocument | null, next: CatalogueDocument): string[] {
  const shape = documentFaults(next);
  if (shape.length > 0) return shape;
  if (published === null) return [];
  if (next.version < published.version) return [`version was ${published.version} and cannot fall to ${next.version}`];
  if (next.version > published.version) return [];
  return [
    ...compareFields(published, next, ''),
    ...compareLists(published.renditions, next.renditions, (rendition) => rendition.label, 'rendition'),
    ...compareLists(published.streams, next.streams, (stream) => stream.id, 'stream'),
  ].map((change) => `${change}: version must rise above ${published.version} for that`);
}
