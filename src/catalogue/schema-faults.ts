// Checks values from outside against TypeBox schemas. `fault` in a schema is the error text for a value that does not
// match; a part without one uses the text of the part that contains it.
import type { TSchema } from 'typebox';
import { Compile, Errors } from 'typebox/schema';
import { Settings } from 'typebox/system';

export interface Fault {
  /** Such as `streams[0].title`; empty for the value itself. */
  path: string;
  message: string;
}

/** Each schema is compiled once, at its first use. */
const validators = new WeakMap<TSchema, ReturnType<typeof Compile>>();

function validatorOf(schema: TSchema) {
  const validator = validators.get(schema) ?? Compile(schema);
  validators.set(schema, validator);
  return validator;
}

type SchemaError = ReturnType<typeof Errors>[1][number];
type Node = Record<string, unknown>;

/** Everything in which a value does not match the schema, each once, up to `most`. */
export function faultsIn(schema: TSchema, value: unknown, most: number): Fault[] {
  if (validatorOf(schema).Check(value)) return [];
  const faults = new Map<string, Fault>();
  for (const error of errorsOf(schema, value, most)) {
    for (const fault of faultsOf(error, schema, value)) faults.set(`${fault.path} ${fault.message}`, fault);
  }
  return [...faults.values()].slice(0, most);
}

/** Numbers that JSON cannot carry as they are: `.nan` and `.inf` would become null, a large integer another one. */
export function numberFaults(value: unknown, path: string): Fault[] {
  if (typeof value === 'object' && value !== null) {
    const under = (name: string) => (Array.isArray(value) ? `${path}[${name}]` : `${path}.${name}`);
    return Object.entries(value).flatMap(([name, part]) => numberFaults(part, under(name)));
  }
  if (typeof value !== 'number') return [];
  if (!Number.isFinite(value)) return [{ path, message: 'must be a finite number' }];
  if (Number.isInteger(value) && !Number.isSafeInteger(value))
    return [{ path, message: `is too large to be exact; write it as a string` }];
  return [];
}

/** TypeBox stops at eight errors. The limit is one for the whole process, so it is raised and set back in one go. */
function errorsOf(schema: TSchema, value: unknown, most: number): SchemaError[] {
  const { maxErrors } = Settings.Get();
  // A value can break several rules of its schema that share one text.
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
  // TypeBox reports each unknown field this way too, beside additionalProperties.
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

/** The part of a schema that the segments lead to, and the error text that applies there. */
function partOf(schema: TSchema, segments: string[]): { node: Node; message: string } {
  let node = schema as Node;
  let message = String(node.fault ?? 'is wrong');
  for (const segment of segments) {
    node = (node[segment] ?? {}) as Node;
    if (typeof node.fault === 'string') message = node.fault;
  }
  return { node, message };
}
