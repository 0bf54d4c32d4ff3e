// Validates requests against their declarations. Schemas are compiled, and the compiler is loaded, on first use, to keep
// the start fast.
import { createRequire } from 'node:module';
import type { TObject, TSchema } from 'typebox';
import type * as TypeboxCompile from 'typebox/compile';
import { ApiError, type ErrorDetail } from '../../contract/errors.ts';

const maxDepth = 32;
const maxDetails = 20;
const maxPath = 200;

type Validator = TypeboxCompile.Validator;

const require = createRequire(import.meta.url);
let compiler: typeof TypeboxCompile | undefined;

/** Loads the compiler if it is not loaded yet. */
export function loadCompiler(): typeof TypeboxCompile {
  compiler ??= require('typebox/compile') as typeof TypeboxCompile;
  return compiler;
}

const compiled = new WeakMap<TSchema, Validator>();

function validatorOf(schema: TSchema): Validator {
  let validator = compiled.get(schema);
  if (!validator) {
    validator = loadCompiler().Compile(schema) as unknown as Validator;
    compiled.set(schema, validator);
  }
  return validator;
}

export const conforms = (schema: TSchema, value: unknown): boolean => validatorOf(schema).Check(value);

/** Returns the value if it is valid; else throws 400 with the path of every fault, beginning with `root`. */
export function validate(schema: TObject, value: unknown, root: 'body' | 'query'): unknown {
  const faults = textFaults(value, root);
  const validator = validatorOf(schema);
  if (faults.length === 0 && validator.Check(value)) return value;
  if (faults.length === 0) faults.push(...schemaFaults(validator, value, root));
  throw new ApiError('invalid_request', `The ${root} is not valid: ${faults[0]!.path} ${faults[0]!.message}.`, {
    details: faults,
  });
}

function schemaFaults(validator: Validator, value: unknown, root: string): ErrorDetail[] {
  const faults = new Map<string, ErrorDetail>();
  for (const error of validator.Errors(value)) {
    const at = root + error.instancePath.replaceAll('/', '.').replaceAll('~1', '/').replaceAll('~0', '~');
    for (const [long, message] of explain(at, error)) {
      const path = clip(long, maxPath);
      if (faults.size < maxDetails && !faults.has(path + message)) faults.set(path + message, { path, message });
    }
  }
  return [...faults.values()];
}

interface SchemaError {
  keyword: string;
  message: string;
  params: object;
}

function explain(at: string, { keyword, message, params }: SchemaError): [path: string, message: string][] {
  const of = <T>(name: string): T => (params as Record<string, T>)[name]!;
  if (keyword === 'additionalProperties') {
    return of<string[]>('additionalProperties').map((name) => [`${at}.${name}`, 'is not a known field']);
  }
  if (keyword === 'required') {
    return of<string[]>('requiredProperties').map((name) => [`${at}.${name}`, 'is required']);
  }
  // TypeBox also reports each unknown field this way, before additionalProperties, and these may fill the whole list.
  if (keyword === 'boolean') return [[at, 'is not a known field']];
  if (keyword === 'enum') return [[at, `must be one of ${of<string[]>('allowedValues').join(', ')}`]];
  return [[at, message]];
}

/** Cuts the text without splitting a character. */
const clip = (text: string, length: number): string =>
  (text.length > length ? `${text.slice(0, length)}…` : text).toWellFormed();

/** Faults that apply to any schema: NUL or a lone surrogate in a string, and nesting that is too deep. */
function textFaults(value: unknown, path: string, depth = 0): ErrorDetail[] {
  if (typeof value === 'string') {
    if (value.includes('\0')) return [{ path, message: 'must not contain NUL' }];
    return value.isWellFormed() ? [] : [{ path, message: 'must be well-formed Unicode' }];
  }
  if (typeof value !== 'object' || value === null) return [];
  if (depth >= maxDepth) return [{ path, message: `is nested deeper than ${maxDepth} levels` }];
  const faults: ErrorDetail[] = [];
  for (const [name, item] of Object.entries(value)) {
    if (!name.isWellFormed() || name.includes('\0'))
      faults.push({ path, message: 'has a field name with invalid characters' });
    faults.push(...textFaults(item, clip(`${path}.${name}`, maxPath), depth + 1));
    if (faults.length >= maxDetails) break;
  }
  return faults;
}

/** Converts query parameters, which arrive as text, to numbers and booleans where the schema asks for them. */
export function coerceQuery(schema: TObject, query: Record<string, unknown>): Record<string, unknown> {
  // Unlike an assignment, fromEntries treats `__proto__` as an ordinary name.
  return Object.fromEntries(
    Object.entries(query).map(([name, value]) => {
      const type = (schema.properties[name] as { type?: string } | undefined)?.type;
      if (type === 'integer' && typeof value === 'string' && /^-?\d{1,15}$/.test(value)) return [name, Number(value)];
      if (type === 'boolean' && (value === 'true' || value === 'false')) return [name, value === 'true'];
      return [name, value];
    }),
  );
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

export function parseJson(bytes: Buffer): unknown {
  if (bytes.length === 0) return undefined;
  try {
    return JSON.parse(utf8.decode(bytes));
  } catch {
    throw new ApiError('invalid_json', 'The body is not JSON in UTF-8.');
  }
}
