// The version rule of the specification: `version` rises only when a field is removed or changes meaning, and adding a
// field never changes it. The guard compares what is about to be published with what clients have been shown, at any
// depth.
import { type CatalogueDocument, documentFaults } from './document.ts';

type JsonType = 'null' | 'array' | 'object' | 'string' | 'number' | 'boolean';

/** What values of one place look like. For the items of a list it is one shape for all of them. */
interface Shape {
  types: Set<JsonType>;
  /** `always`: every object had it. */
  fields: Map<string, { shape: Shape; always: boolean }>;
  items: Shape | null;
}

function typeOf(value: unknown): JsonType {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'array';
  return typeof value as JsonType;
}

/** The specification gives these more than one type. */
const eitherType: Record<string, JsonType[]> = { hls: ['string', 'null'] };
/** A map from labels to paths: its keys are no fields. */
const maps = new Set(['progressive']);

function shapeOf(values: unknown[]): Shape {
  const objects = values.filter((value) => typeOf(value) === 'object') as Record<string, unknown>[];
  const lists = values.filter(Array.isArray) as unknown[][];
  const names = new Set(objects.flatMap((object) => Object.keys(object)));
  const fields = [...names].map((name) => {
    const having = objects.filter((object) => Object.hasOwn(object, name));
    return [
      name,
      { shape: shapeOf(having.map((each) => each[name])), always: having.length === objects.length },
    ] as const;
  });
  return {
    types: new Set(values.map(typeOf)),
    fields: new Map(fields),
    items: lists.some((list) => list.length > 0) ? shapeOf(lists.flat()) : null,
  };
}

const listed = (types: Iterable<JsonType>) => [...types].sort().join(' or ');

function compareShapes(was: Shape, is: Shape, place: string, name: string): string[] {
  const allowed = new Set([...was.types, ...(eitherType[name] ?? [])]);
  if ([...is.types].some((type) => !allowed.has(type)))
    return [`${place} was ${listed(was.types)} and is now ${listed(is.types)}`];
  const changes = [...was.fields].flatMap(([field, { shape, always }]) => {
    const now = is.fields.get(field);
    const path = `${place}.${field}`;
    const isGone = is.types.has('object') && !maps.has(name) && always && !now?.always;
    if (isGone) return [now === undefined ? `${path} was removed` : `${path} was in every item and is not any more`];
    return now === undefined ? [] : compareShapes(shape, now.shape, path, field);
  });
  const items = was.items && is.items ? compareShapes(was.items, is.items, `${place}[]`, '') : [];
  return [...changes, ...items];
}

function compareFields(before: object, after: object, place: string): string[] {
  const next = after as Record<string, unknown>;
  return Object.entries(before).flatMap(([name, value]) => {
    if (!Object.hasOwn(next, name)) return [`${place}${name} was removed`];
    return compareShapes(shapeOf([value]), shapeOf([next[name]]), `${place}${name}`, name);
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
  const { renditions: oldRenditions, streams: oldStreams, ...oldTop } = published;
  const { renditions, streams, ...top } = next;
  return [
    ...compareFields(oldTop, top, ''),
    ...compareLists(oldRenditions, renditions, (rendition) => rendition.label, 'rendition'),
    ...compareLists(oldStreams, streams, (stream) => stream.id, 'stream'),
  ].map((change) => `${change}: version must rise above ${published.version} for that`);
}
