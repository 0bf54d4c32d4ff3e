// Validates requests against their declarations. A value passes three steps, each of which bounds the work of the next:
// the number of JSON values, before it is parsed; sizes and nesting, without reading what is too large; the schema itself,
// compiled by TypeBox. Only for a value that fails is the complete list of faults made.
import type { TObject, TSchema } from 'typebox';
import { Compile, type Validator } from 'typebox/compile';
import { ApiError, type ErrorDetail } from '../../contract/errors.ts';

/** Returns the value if it is valid; else throws 400 with the path of every fault, beginning with `root`. */
export function validate(schema: TObject, value: unknown, root: 'body' | 'query'): unknown {
  const excess = findExcess(schema as SchemaNode, value, root);
  if (excess.details.length > 0) throw invalid(root, excess);
  if (conforms(schema, value)) return value;
  throw invalid(root, findSchemaFaults(schema as SchemaNode, value, root));
}

function invalid(root: string, faults: FaultList): ApiError {
  if (faults.details.length === 0) faults.add('is not valid');
  const { path, message } = faults.details[0]!;
  return new ApiError('invalid_request', `The ${root} is not valid: ${path} ${message}.`, { details: faults.details });
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
  if (hasTooManyValues(bytes)) {
    throw new ApiError('invalid_request', `The body has more than ${maxValues} values.`, {
      details: [{ path: 'body', message: `must not have more than ${maxValues} values` }],
    });
  }
  try {
    return JSON.parse(utf8.decode(bytes));
  } catch {
    throw new ApiError('invalid_json', 'The body is not JSON in UTF-8.');
  }
}

// The first check of what a client sent: whether a list or an object is larger than its schema allows, or nested too deep,
// and whether all text is text. Nothing inside what is too large is read, so the work does not depend on how much too large
// it is, and later checks work on a value of a limited size.

const maxDepth = 32;
/** So many unknown fields are left for the complete list of faults; with more, that list would name nothing else. */
const maxUnknown = 20;

function findExcess(schema: SchemaNode, value: unknown, root: string): FaultList {
  const faults = new FaultList(root);
  checkSize(schema, value, faults, 0);
  return faults;
}

/** `schema` is undefined below fields that the schema does not name but allows. */
function checkSize(schema: SchemaNode | undefined, value: unknown, faults: FaultList, depth: number): void {
  if (typeof value === 'string') checkText(value, faults);
  if (typeof value !== 'object' || value === null) return;
  if (depth >= maxDepth) {
    faults.add(`is nested deeper than ${maxDepth} levels`);
    return;
  }
  const meant = schema && alternativeFor(schema, value);
  if (isFields(value)) {
    if (!meant || meant.type === 'object') checkFieldCount(meant, value, faults, depth);
  } else if (!meant || meant.type === 'array') {
    checkItemCount(meant, value as unknown[], faults, depth);
  }
}

function checkText(text: string, faults: FaultList): void {
  if (text.includes('\0')) faults.add('must not contain NUL');
  else if (!text.isWellFormed()) faults.add('must be well-formed Unicode');
}

function checkItemCount(schema: SchemaNode | undefined, items: unknown[], faults: FaultList, depth: number): void {
  const most = schema?.maxItems ?? Number.POSITIVE_INFINITY;
  if (items.length > most) {
    faults.add(`must not have more than ${most} items`);
    return;
  }
  for (const [index, item] of items.entries()) {
    faults.enter(index);
    checkSize(schema?.items, item, faults, depth + 1);
    faults.leave();
    if (faults.isFull) return;
  }
}

function checkFieldCount(schema: SchemaNode | undefined, fields: object, faults: FaultList, depth: number): void {
  const names = Object.keys(fields);
  const most = schema?.maxProperties ?? Number.POSITIVE_INFINITY;
  if (names.length > most) {
    faults.add(`must not have more than ${most} properties`);
    return;
  }
  const isClosed = schema?.additionalProperties === false;
  const known = Object.keys(schema?.properties ?? {}).length;
  if (isClosed && !schema.patternProperties && names.length > known + maxUnknown) {
    addUnknown(schema, names, faults);
    return;
  }
  for (const name of names) {
    if (!name.isWellFormed() || name.includes('\0')) faults.add('has a field name with invalid characters');
    const schemaOfValue = schema && schemaOfField(schema, name);
    if (isClosed && !schemaOfValue) continue;
    faults.enter(name);
    checkSize(schemaOfValue, (fields as Record<string, unknown>)[name], faults, depth + 1);
    faults.leave();
    if (faults.isFull) return;
  }
}

function addUnknown(schema: SchemaNode, names: string[], faults: FaultList): void {
  for (const name of names) {
    if (!schemaOfField(schema, name)) faults.add('is not a known field', name);
    if (faults.isFull) return;
  }
}

// Every way in which a value differs from its schema, for people to read. TypeBox judges texts and numbers; objects and
// lists are walked here, once and in order, and no further than to the last fault that is reported.

export function findSchemaFaults(schema: SchemaNode, value: unknown, root: string): FaultList {
  const faults = new FaultList(root);
  compareValue(schema, value, faults);
  return faults;
}

function compareValue(schema: SchemaNode, value: unknown, faults: FaultList): void {
  const meant = alternativeFor(schema, value);
  const wrong = () => faults.add(`must be ${(schema.anyOf ?? [schema]).map(({ type }) => type).join(' or ')}`);
  if (meant.type === 'object') {
    if (isFields(value)) compareFields(meant, value, faults);
    else wrong();
  } else if (meant.type === 'array') {
    if (Array.isArray(value)) compareItems(meant, value, faults);
    else wrong();
  } else if (typeof value === 'object' && value !== null) {
    wrong();
  } else {
    compareLeaf(meant, value, faults);
  }
}

function compareFields(schema: SchemaNode, fields: Fields, faults: FaultList): void {
  const names = Object.keys(fields);
  const { properties = {}, required = [], minProperties = 0, additionalProperties } = schema;
  for (const name of names) {
    if (additionalProperties === false && !schemaOfField(schema, name)) faults.add('is not a known field', name);
    if (faults.isFull) return;
  }
  for (const name of required) if (!Object.hasOwn(fields, name)) faults.add('is required', name);
  if (names.length < minProperties) faults.add(`must not have fewer than ${minProperties} properties`);
  for (const name of names) {
    const schemaOfValue = schemaOfField(schema, name);
    if (!schemaOfValue || (fields[name] === undefined && Object.hasOwn(properties, name))) continue;
    faults.enter(name);
    compareValue(schemaOfValue, fields[name], faults);
    faults.leave();
    if (faults.isFull) return;
  }
}

function compareItems({ items, minItems = 0, uniqueItems }: SchemaNode, list: unknown[], faults: FaultList): void {
  if (list.length < minItems) faults.add(`must not have fewer than ${minItems} items`);
  if (uniqueItems && new Set(list).size < list.length) faults.add('must not have duplicate items');
  for (const [index, item] of list.entries()) {
    faults.enter(index);
    compareValue(items!, item, faults);
    faults.leave();
    if (faults.isFull) return;
  }
}

function compareLeaf(schema: SchemaNode, value: unknown, faults: FaultList): void {
  const { maxLength = Number.POSITIVE_INFINITY } = schema;
  // No character takes more than two units. Neither a pattern nor a format is tried on text that is too long anyway.
  if (typeof value === 'string' && value.length > 2 * maxLength) {
    faults.add(`must not have more than ${maxLength} characters`);
    return;
  }
  for (const { keyword, message, params } of validatorOf(schema).Errors(value)) {
    const { allowedValues } = params as { allowedValues?: string[] };
    faults.add(keyword === 'enum' && allowedValues ? `must be one of ${allowedValues.join(', ')}` : message);
  }
}

const maxFaults = 20;
const maxPath = 200;

/** What is wrong with a value, each fault with its path: as many as a response reports, and no more. */
class FaultList {
  readonly details: ErrorDetail[] = [];
  readonly #trail: string[];

  constructor(root: string) {
    this.#trail = [root];
  }

  get isFull(): boolean {
    return this.details.length >= maxFaults;
  }

  /** What is added until `leave` belongs to this field or item. */
  enter(name: string | number): void {
    this.#trail.push(String(name));
  }

  leave(): void {
    this.#trail.pop();
  }

  add(message: string, ...below: string[]): void {
    if (!this.isFull) this.details.push({ path: clip([...this.#trail, ...below].join('.')), message });
  }
}

/** Cuts the text without splitting a character. */
const clip = (text: string): string => (text.length > maxPath ? `${text.slice(0, maxPath)}…` : text).toWellFormed();

// A schema as validation reads it. Requests use no other keywords for objects and lists; a test checks that.

export interface SchemaNode {
  type?: string;
  properties?: Record<string, SchemaNode>;
  patternProperties?: Record<string, SchemaNode>;
  additionalProperties?: boolean;
  required?: string[];
  minProperties?: number;
  maxProperties?: number;
  items?: SchemaNode;
  minItems?: number;
  maxItems?: number;
  uniqueItems?: boolean;
  maxLength?: number;
  anyOf?: SchemaNode[];
}

type Fields = Record<string, unknown>;

const isFields = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** The alternative that such a value is meant for: of two, one is always null. */
export function alternativeFor(schema: SchemaNode, value: unknown): SchemaNode {
  if (!schema.anyOf) return schema;
  const [first, second] = schema.anyOf as [SchemaNode, SchemaNode];
  return (first.type === 'null') === (value === null) ? first : second;
}

/** The schema of a field; undefined for one that the schema does not name. */
function schemaOfField({ properties, patternProperties }: SchemaNode, name: string): SchemaNode | undefined {
  if (properties && Object.hasOwn(properties, name)) return properties[name];
  if (!patternProperties) return undefined;
  for (const pattern in patternProperties) if (matches(pattern, name)) return patternProperties[pattern];
  return undefined;
}

const patterns = new Map<string, RegExp>();

function matches(pattern: string, text: string): boolean {
  let expression = patterns.get(pattern);
  if (!expression) {
    expression = new RegExp(pattern, 'u');
    patterns.set(pattern, expression);
  }
  return expression.test(text);
}

// Schemas are compiled on first use, to keep the start fast.

const compiled = new WeakMap<object, Validator>();

function validatorOf(schema: object): Validator {
  let validator = compiled.get(schema);
  if (!validator) {
    validator = Compile(schema as TSchema) as unknown as Validator;
    compiled.set(schema, validator);
  }
  return validator;
}

export const conforms = (schema: object, value: unknown): boolean => validatorOf(schema).Check(value);

// The number of values in a JSON text is counted without parsing it: building a hundred thousand small values takes many
// times as long, and no request needs so many.

export const maxValues = 20_000;

const [quote, backslash, comma] = [0x22, 0x5c, 0x2c];

/** Counts the commas outside of strings. What is not JSON is left for the parser to refuse. */
export function hasTooManyValues(json: Uint8Array): boolean {
  if (json.length <= maxValues) return false;
  let commas = 0;
  let isText = false;
  for (let at = 0; at < json.length; at++) {
    const byte = json[at];
    if (isText) {
      if (byte === backslash) at++;
      else if (byte === quote) isText = false;
    } else if (byte === quote) {
      isText = true;
    } else if (byte === comma && ++commas >= maxValues) {
      return true;
    }
  }
  return false;
}
