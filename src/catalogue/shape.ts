// Values from outside against TypeBox schemas. A schema says with `fault` what a person is told where a value departs from
// it; a part without one is covered by the next one around it.
import type { TSchema } from 'typebox';
import { Compile, Errors } from 'typebox/schema';
import { Settings } from 'typebox/system';

export interface Fault {
  /** Such as `streams[0].title`; empty for the value itself. */
  path: string;
  message: string;
}

type SchemaError = ReturnType<typeof Errors>[1][number];
type Node = Record<string, unknown>;

/** Every departure from the schema, each told once, up to `most`. */
export function faultsIn(schema: TSchema, value: unknown, most: number): Fault[] {
  if (Compile(schema).Check(value)) return [];
  const told = new Map<string, Fault>();
  for (const error of errorsOf(schema, value, most)) {
    for (const fault of faultsOf(error, schema, value)) told.set(`${fault.path} ${fault.message}`, fault);
  }
  return [...told.values()].slice(0, most);
}

/** TypeBox keeps eight errors unless told otherwise, and can be told only for the whole process: so it is told back. */
function errorsOf(schema: TSchema, value: unknown, most: number): SchemaError[] {
  const { maxErrors } = Settings.Get();
  // One value can be wrong in several ways that are told as one.
  Settings.Set({ maxErrors: most * 4 });
  try {
    return Errors(schema, value)[1];
  } finally {
    Settings.Set({ maxErrors });
  }
}

const segmentsOf = (pointer: string): string[] =>
  pointer
    .split('/')
    .slice(1)
    .map((segment) => segment.replaceAll('~1', '/').replaceAll('~0', '~'));

function faultsOf(error: SchemaError, schema: TSchema, value: unknown): Fault[] {
  const { path, at } = locate(value, segmentsOf(error.instancePath));
  const { node, message } = partOf(schema, segmentsOf(error.schemaPath));
  const params = error.params as Record<string, unknown>;
  const properties = (node.properties ?? {}) as Record<string, Node>;
  if (error.keyword === 'required')
    return (params.requiredProperties as string[]).map((name) => ({
      path: path === '' ? name : `${path}.${name}`,
      message: String(properties[name]?.fault ?? message),
    }));
  if (error.keyword === 'additionalProperties')
    return (params.additionalProperties as string[]).map((name) => ({
      path,
      message: `has an unknown field "${name}" (known: ${Object.keys(properties).join(', ')})`,
    }));
  // Comes for each unknown field as well, beside additionalProperties.
  if (error.keyword === 'boolean') return [];
  if (error.keyword === 'maxItems')
    return [{ path, message: `has ${(at as unknown[]).length} items, at most ${node.maxItems} are allowed` }];
  return [{ path, message }];
}

/** Where in a value the segments lead, and how a person writes that down. */
function locate(value: unknown, segments: string[]): { path: string; at: unknown } {
  let [path, at] = ['', value];
  for (const segment of segments) {
    if (Array.isArray(at)) path += `[${segment}]`;
    else path += path === '' ? segment : `.${segment}`;
    at = (at as Record<string, unknown> | undefined)?.[segment];
  }
  return { path, at };
}

/** The part of a schema that the segments lead to, and the text of the nearest part around it that has one. */
function partOf(schema: TSchema, segments: string[]): { node: Node; message: string } {
  let node = schema as Node;
  let message = String(node.fault ?? 'is wrong');
  for (const segment of segments) {
    node = (node[segment] ?? {}) as Node;
    if (typeof node.fault === 'string') message = node.fault;
  }
  return { node, message };
}
