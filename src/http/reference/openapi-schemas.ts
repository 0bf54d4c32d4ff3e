// TypeBox schemas as JSON schemas of the OpenAPI document.
import type { TSchema } from 'typebox';

export type Json = Record<string, unknown>;

/** A named schema is added to `schemas`, the components, and becomes a reference; any other is returned itself. */
export function refer(schema: TSchema, schemas: Json): Json {
  const { $id } = schema as { $id?: string };
  if ($id === undefined) return plain(schema, schemas);
  if (!(($id as string) in schemas)) {
    schemas[$id] = {};
    schemas[$id] = plain(schema, schemas);
  }
  return { $ref: `#/components/schemas/${$id}` };
}

/** Without the properties that TypeBox adds for itself. */
export function plain(schema: TSchema, schemas: Json): Json {
  const { $id: _, ...rest } = JSON.parse(JSON.stringify(schema)) as Json;
  return walk(rest, schema as unknown as Json, schemas) as Json;
}

function walk(value: unknown, source: unknown, schemas: Json): unknown {
  if (Array.isArray(value)) return value.map((item, index) => child(item, (source as unknown[])[index], schemas));
  if (typeof value !== 'object' || value === null) return value;
  const out: Json = {};
  for (const [name, item] of Object.entries(value)) {
    if (name.startsWith('~')) continue;
    out[name] = child(item, (source as Json)[name], schemas);
  }
  return out;
}

function child(value: unknown, source: unknown, schemas: Json): unknown {
  const named = typeof source === 'object' && source !== null && '$id' in source;
  return named ? refer(source as TSchema, schemas) : walk(value, source, schemas);
}
