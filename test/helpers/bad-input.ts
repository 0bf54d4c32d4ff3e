// Requests made from the OpenAPI document with something wrong in one place or several: the rest is right, so that they
// get past the first check.
import fc from 'fast-check';
import { asJson, notJson, oddHeaders, oddName, oddQuery, oddSegment, oddValue } from './odd-input.ts';
import { fitting, type Schema } from './schema-values.ts';

export interface Operation {
  id: string;
  method: string;
  path: string;
  parameters: { name: string; in: string; schema: Schema }[];
  body: Schema | null;
}

export interface StormRequest {
  method: string;
  path: string;
  headers: Record<string, string>;
  body: Buffer | null;
}

/** Real things a request may name, so that some requests succeed; of a parameter that is not here, only the form is right. */
export interface Fixture {
  token: string;
  params: Record<string, string[]>;
  cursors: string[];
}

function setOwn(target: object, name: string, value: unknown): void {
  Object.defineProperty(target, name, { value, enumerable: true, configurable: true, writable: true });
}

const isPlain = (value: unknown): value is object =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** One wrong thing done to a value: a field of another kind, one missing, one too many, at any depth. */
function spoiled(value: unknown, [kind, pick, name, odd]: [string, number, string, unknown]): unknown {
  if (!isPlain(value)) return odd;
  const copy = Object.defineProperties({}, Object.getOwnPropertyDescriptors(value));
  const names = Object.keys(copy);
  const chosen = names[pick % Math.max(1, names.length)];
  if (kind === 'add' || chosen === undefined) setOwn(copy, name, odd);
  else if (kind === 'drop') delete (copy as Record<string, unknown>)[chosen];
  else if (kind === 'into')
    setOwn(copy, chosen, spoiled((copy as Record<string, unknown>)[chosen], ['add', pick, name, odd]));
  else setOwn(copy, chosen, odd);
  return copy;
}

const spoiling = fc.tuple(fc.constantFrom('add', 'drop', 'into', 'replace'), fc.nat(50), oddName, oddValue);

function bodyOf(schema: Schema | null): fc.Arbitrary<Buffer | null> {
  const right = schema ? fitting(schema) : fc.constant({});
  const wrong = fc
    .tuple(right, fc.array(spoiling, { minLength: 1, maxLength: 2 }))
    .map(([value, steps]) => asJson(steps.reduce<unknown>(spoiled, value)));
  const spoilt = [
    { arbitrary: wrong, weight: 6 },
    { arbitrary: oddValue.map(asJson), weight: 1 },
    { arbitrary: notJson, weight: 2 },
  ];
  if (!schema) return fc.oneof({ arbitrary: fc.constant(null), weight: 14 }, ...spoilt);
  return fc.oneof({ arbitrary: right.map(asJson), weight: 4 }, { arbitrary: fc.constant(null), weight: 1 }, ...spoilt);
}

/** `fixture` is read when a request is made, because what it names comes and goes. */
export function requestsOf(operation: Operation, fixture: Fixture): fc.Arbitrary<StormRequest> {
  const names = [...operation.path.matchAll(/\{(\w+)\}/g)].map((match) => match[1]!);
  const real = (name: string): fc.Arbitrary<{ name: string; other: number } | string> => {
    // What is named second belongs to what is named first, in most requests: a rule to its project.
    const other = fc.oneof({ arbitrary: fc.constant(0), weight: 9 }, { arbitrary: fc.nat(100), weight: 1 });
    if (fixture.params[name]) return other.map((other) => ({ name, other }));
    return fitting(operation.parameters.find((parameter) => parameter.name === name)!.schema) as fc.Arbitrary<string>;
  };
  const segments = fc.tuple(
    ...names.map((name) => fc.oneof({ arbitrary: real(name), weight: 8 }, { arbitrary: oddSegment, weight: 2 })),
  );
  const query = fc.oneof(
    { arbitrary: fc.constant([] as string[]), weight: 5 },
    { arbitrary: fc.array(oddQuery, { minLength: 1, maxLength: 2 }), weight: 3 },
    { arbitrary: fc.nat(9).map((pick) => [`cursor=${fixture.cursors[pick % fixture.cursors.length]}`]), weight: 1 },
    { arbitrary: fc.constantFrom(['limit=1'], ['limit=100'], ['limit=20']), weight: 1 },
  );
  const headers = fc.oneof(
    { arbitrary: fc.constant([] as Record<string, string>[]), weight: 6 },
    { arbitrary: fc.array(oddHeaders, { minLength: 1, maxLength: 2 }), weight: 4 },
  );
  return fc
    .record({ pick: fc.nat(100), segments, query, headers, body: bodyOf(operation.body) })
    .map(({ pick, segments, query, headers, body }) => {
      const filled = segments.map((segment) => {
        if (typeof segment === 'string') return segment;
        const known = fixture.params[segment.name]!;
        return known[(pick + segment.other) % known.length]!;
      });
      const path = `/v1${operation.path.replaceAll(/\{\w+\}/g, () => filled.shift()!)}`;
      return {
        method: operation.method,
        path: query.length === 0 ? path : `${path}?${query.join('&')}`,
        headers: Object.assign(
          { authorization: `Bearer ${fixture.token}`, ...(body && { 'content-type': 'application/json' }) },
          ...headers,
        ),
        body,
      };
    });
}
