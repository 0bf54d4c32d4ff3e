// The largest body that the service reads, in every place where a schema takes a list or an object: the work is counted as
// the number of values that are read of it.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import type { TObject } from 'typebox';
import { routes } from '../../contract/api.ts';
import { ApiError } from '../../contract/errors.ts';
import {
  alternativeFor,
  conforms,
  findSchemaFaults,
  hasTooManyValues,
  maxValues,
  type SchemaNode,
  validate,
} from './validate.ts';

const bodyLimit = 1024 * 1024;

/** Each once, with the first route that takes it. */
const requestSchemas = [
  ...new Map(
    routes
      .toReversed()
      .flatMap(({ name, query, body }) => [
        { name: `${name} query`, schema: query as SchemaNode },
        ...(body ? [{ name: `${name} body`, schema: body as SchemaNode }] : []),
      ])
      .map((request) => [request.schema, request]),
  ).values(),
];

interface Place {
  schema: SchemaNode;
  /** Names of fields, `0` for an item, that lead to it. */
  path: string[];
}

/** Every list and object that a schema takes. */
function placesOf(schema: SchemaNode, path: string[] = []): Place[] {
  const meant = alternativeFor(schema, {});
  const below =
    meant.type === 'object'
      ? Object.entries({ ...meant.properties, ...(meant.patternProperties && { any: anyOf(meant) }) })
      : meant.type === 'array'
        ? [['0', meant.items!] as const]
        : null;
  if (!below) return [];
  return [{ schema: meant, path }, ...below.flatMap(([name, child]) => placesOf(child, [...path, name]))];
}

const anyOf = ({ patternProperties }: SchemaNode): SchemaNode => Object.values(patternProperties!)[0]!;

/** A value with `filling` at the place. */
const wrap = (path: string[], filling: unknown): unknown =>
  path.toReversed().reduce((value, name) => (name === '0' ? [value] : { [name]: value }), filling);

const repeat = (bytes: number, piece: (index: number) => string): string => {
  const pieces: string[] = [];
  for (let length = 0; length < bytes - 64; length += pieces.at(-1)!.length + 1) pieces.push(piece(pieces.length));
  return pieces.join(',');
};

/** Long, because an object that counts what is read of it lists its names slowly. */
const nameOf = (index: number) => `a${String(index).padStart(100, '0')}`;

const fillings: Record<string, (bytes: number) => string> = {
  'the same number': (bytes) => `[${repeat(bytes, () => '1')}]`,
  'the same text': (bytes) => `[${repeat(bytes, () => '"a"')}]`,
  'different texts': (bytes) => `[${repeat(bytes, (index) => `"a${index}"`)}]`,
  'empty objects': (bytes) => `[${repeat(bytes, () => '{}')}]`,
  'names with texts': (bytes) => `{${repeat(bytes, (index) => `"${nameOf(index)}":"a"`)}}`,
  'names with numbers': (bytes) => `{${repeat(bytes, (index) => `"${nameOf(index)}":1`)}}`,
};

/** Counts what is read of a value, however deep. */
function counted(value: unknown, work: { reads: number }): unknown {
  if (typeof value !== 'object' || value === null) return value;
  return new Proxy(value, {
    get(target, name, self) {
      work.reads++;
      return counted(Reflect.get(target, name, Array.isArray(target) ? target : self), work);
    },
  });
}

function workOn(schema: SchemaNode, path: string[], filling: unknown): { reads: number; faults: number } {
  const work = { reads: 0 };
  try {
    validate(schema as unknown as TObject, counted(wrap(path, filling), work), 'body');
    return { ...work, faults: 0 };
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    return { ...work, faults: error.details!.length };
  }
}

describe('every schema of a request', () => {
  test('limits every list and object, and offers null as the only alternative', () => {
    for (const { name, schema } of requestSchemas) {
      for (const { schema: place, path } of placesOf(schema)) {
        const at = `${name} ${path.join('.')}`;
        const isClosed = place.additionalProperties === false && !place.patternProperties;
        if (place.type === 'array') assert.ok(place.maxItems! <= 1000, `${at} has no maxItems`);
        else assert.ok(isClosed || place.maxProperties! <= 1000, `${at} has no maxProperties`);
      }
      for (const [, alternatives] of JSON.stringify(schema).matchAll(/"anyOf":(\[.*)/g)) {
        assert.match(alternatives!, /^\[.*?\{"type":"null"\}\]/, name);
      }
      assert.doesNotMatch(JSON.stringify(schema), /"(?:\$ref|oneOf|allOf|not|if|contains|prefixItems|propertyNames)":/);
    }
  });

  test('is checked with work that does not grow with what is beyond its limits', () => {
    const parsed = Object.entries(fillings).map(([filling, textOf]) => ({
      filling,
      small: JSON.parse(textOf(bodyLimit / 16)),
      large: JSON.parse(textOf(bodyLimit)),
    }));
    let tried = 0;
    for (const { name, schema } of requestSchemas) {
      for (const { schema: place, path } of placesOf(schema)) {
        for (const { filling, ...values } of parsed) {
          if (Array.isArray(values.large) !== (place.type === 'array')) continue;
          const small = workOn(schema, path, values.small);
          const large = workOn(schema, path, values.large);
          const at = `${filling} at ${name} ${path.join('.')}`;
          assert.ok(large.faults > 0 && large.faults <= 20, `${at}: ${large.faults} faults`);
          assert.equal(large.reads, small.reads, at);
          tried++;
        }
      }
    }
    assert.ok(tried > 50, `${tried} bodies`);
  });

  test('is checked with work in proportion to what is within its limits', () => {
    for (const { name, schema } of requestSchemas) {
      for (const { schema: place, path } of placesOf(schema)) {
        const count = place.maxItems ?? place.maxProperties ?? 0;
        for (const [kind, text] of [
          ['wrong items', `[${Array(count).fill('[]').join()}]`],
          ['wrong fields', `{${Array.from({ length: count }, (_, index) => `"a${index}":[]`).join()}}`],
          ['right fields', `{${Array.from({ length: count }, (_, index) => `"a${index}":"a"`).join()}}`],
        ] as const) {
          const { reads, faults } = workOn(schema, path, JSON.parse(text));
          assert.ok(reads <= 100 + 20 * count && faults <= 20, `${kind} at ${name} ${path.join('.')}: ${reads} reads`);
        }
      }
    }
  });
});

test('a value is refused exactly if a fault is told', () => {
  for (const { name, schema } of requestSchemas) {
    const fields = Object.fromEntries(Object.keys(schema.properties ?? {}).map((field) => [field, fc.jsonValue()]));
    const value = fc.oneof(fc.jsonValue(), fc.record(fields, { requiredKeys: [] }));
    fc.assert(
      fc.property(value, (candidate) => {
        const { details } = findSchemaFaults(schema, candidate, 'body');
        assert.equal(details.length === 0, conforms(schema, candidate), `${name} ${JSON.stringify(candidate)}`);
      }),
      { numRuns: 30 },
    );
  }
});

const has = (value: unknown) => hasTooManyValues(Buffer.from(JSON.stringify(value)));
const many = (count: number) => Array.from({ length: count }, (_, n) => n);

test('values are counted wherever they are', () => {
  assert.equal(has(many(maxValues)), false);
  assert.equal(has(many(maxValues + 1)), true);
  assert.equal(has(Object.fromEntries(many(maxValues + 1).map((n) => [`v${n}`, 'a']))), true);
  assert.equal(has(many(maxValues / 100).map(() => many(102))), true);
});

test('commas in texts do not count', () => {
  for (const text of [',', '",', '\\', '\\",', '\\\\",'])
    assert.equal(has({ text: text.repeat(100_000) }), false, text);
  assert.equal(has(['\\', ...many(maxValues)]), true);
});
