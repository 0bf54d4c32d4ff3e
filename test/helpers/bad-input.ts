// Requests as nobody should send them, made from the OpenAPI document: mostly right, so that they get past the first
// check, with something wrong in one place or several.
import fc from 'fast-check';

export interface Schema {
  $ref?: string;
  type?: string;
  enum?: unknown[];
  anyOf?: Schema[];
  properties?: Record<string, Schema>;
  patternProperties?: Record<string, Schema>;
  required?: string[];
  items?: Schema;
  pattern?: string;
  minLength?: number;
  maxLength?: number;
  minimum?: number;
  maximum?: number;
  minItems?: number;
  maxItems?: number;
  format?: string;
}

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

const textOf = (schema: Schema): fc.Arbitrary<string> => {
  if (schema.format === 'date-time') return fc.constantFrom('2999-01-01T00:00:00.000Z', '2999-12-31T23:59:59+01:00');
  if (schema.pattern !== undefined && !['^', '\\S'].includes(schema.pattern)) {
    return fc.stringMatching(new RegExp(schema.pattern), { maxLength: schema.maxLength });
  }
  const maxLength = Math.min(schema.maxLength ?? 30, 30);
  return fc.string({ unit: 'grapheme', maxLength: maxLength - 1 }).map((text) => `a${text}`);
};

/** Values that fit the schema. */
export function fitting(schema: Schema): fc.Arbitrary<unknown> {
  if (schema.enum) return fc.constantFrom(...schema.enum);
  if (schema.anyOf) return fc.oneof(...schema.anyOf.map(fitting));
  switch (schema.type) {
    case 'string':
      return textOf(schema);
    case 'integer':
      return fc.integer({ min: schema.minimum, max: schema.maximum });
    case 'number':
      return fc.double({ min: schema.minimum, max: schema.maximum, noNaN: true });
    case 'boolean':
      return fc.boolean();
    case 'null':
      return fc.constant(null);
    case 'array':
      return fc.uniqueArray(fitting(schema.items!), { minLength: schema.minItems ?? 0, maxLength: 3 });
    default:
      return fittingObject(schema);
  }
}

/** What a field must hold to name something that is there: of the right form alone, it never would. */
const wellKnown: Record<string, string> = {
  environment: 'production',
  region: 'local',
  image: 'registry.example/shop:1',
  hostname: 'shop.example',
};

function fittingObject({ properties = {}, patternProperties = {}, required = [] }: Schema): fc.Arbitrary<object> {
  const [pattern] = Object.entries(patternProperties);
  if (pattern) return fc.dictionary(fc.stringMatching(new RegExp(pattern[0])), fitting(pattern[1]), { maxKeys: 3 });
  const field = (name: string, schema: Schema) =>
    name in wellKnown ? fc.oneof(fc.constant(wellKnown[name]), fitting(schema)) : fitting(schema);
  const fields = Object.fromEntries(Object.entries(properties).map(([name, schema]) => [name, field(name, schema)]));
  return fc.record(fields, { requiredKeys: required });
}

/** Stands for arrays in arrays, 10,000 levels deep, which only the text of a body can hold. */
const deepMark = '@deep';
const asJson = (value: unknown): Buffer =>
  Buffer.from(
    (JSON.stringify(value) ?? 'null').replaceAll(`"${deepMark}"`, () => '['.repeat(10_000) + ']'.repeat(10_000)),
  );

const oddText = fc.constantFrom(
  '',
  ' ',
  '\u0000',
  'a\u0000b',
  '\ud800',
  'x\udc00y',
  '\uffff\ufffe',
  '\u202e\u200b\u2028',
  'a' + '\u0301'.repeat(5000),
  '👩‍👩‍👧‍👦'.repeat(300),
  '😀'.repeat(51),
  'x'.repeat(400_000),
  '__proto__',
  'constructor',
  "'; drop table project; --",
  '../../../etc/passwd',
  '1'.repeat(400),
  '2026-02-30T25:61:61Z',
  '-1',
);

const oddValue: fc.Arbitrary<unknown> = fc.oneof(
  oddText,
  fc.constantFrom<unknown>(
    null,
    true,
    false,
    0,
    -0,
    -1,
    0.5,
    1e308,
    -1e308,
    2 ** 53,
    2 ** 31,
    1e-320,
    [],
    {},
    [null],
    [[]],
  ),
  fc.constantFrom(
    ...['{"__proto__":{"name":1}}', '{"constructor":1}', '{"toString":null}'].map((text) => JSON.parse(text)),
  ),
  fc.constant(deepMark),
  fc.constant(null).map(() => Array.from({ length: 5000 }, (_, index) => `label ${index % 7}`)),
  fc.string({ unit: 'binary', maxLength: 200 }),
  fc.jsonValue({ maxDepth: 3, noUnicodeString: false } as fc.JsonSharedConstraints),
);

const oddName = fc.oneof(
  fc.constantFrom(
    '__proto__',
    'constructor',
    'toString',
    '',
    '\u0000',
    '\ud800',
    'Name',
    'name ',
    'x'.repeat(2000),
    'id',
  ),
  fc.string({ unit: 'binary', maxLength: 20 }),
);

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

const notJson = fc.oneof(
  fc
    .constantFrom('', ' ', '{', '{"name":', "{'name':1}", '{"a":1,}', 'NaN', '\ufeff{}', '{}{}', '[', '"\\u12"', 'nul')
    .map(Buffer.from),
  fc.constant(null).map(() => Buffer.from('['.repeat(10_000))),
  fc.constant(null).map(() => Buffer.from(`{"name":${'{"a":'.repeat(10_000)}1${'}'.repeat(10_000)}}`)),
  fc.constantFrom(
    Buffer.from([0xff, 0xfe, 0x7b]),
    Buffer.from('{"name":"\xe9"}', 'latin1'),
    Buffer.from('{"name":"x"}', 'utf16le'),
  ),
  fc.constant(Buffer.from([0x22, 0xed, 0xa0, 0x80, 0x22])),
  fc.uint8Array({ maxLength: 200 }).map((bytes) => Buffer.from(bytes)),
);

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

const oddSegment = fc.oneof(
  fc.constantFrom(
    '%',
    '%zz',
    '%C3%28',
    '%00',
    '%ff',
    '..',
    '.',
    '%2e%2e%2f',
    '%2F',
    '',
    ':id',
    '*',
    '{id}',
    'a'.repeat(290),
  ),
  fc.constantFrom(
    'a'.repeat(301),
    'a'.repeat(5000),
    '%F0%9F%98%80'.repeat(120),
    '__proto__',
    'prj_0',
    ';a=b',
    "'",
    '%27%20or%201=1',
  ),
  fc.string({ unit: 'binary', maxLength: 20 }).map((text) => encodeURIComponent(text.toWellFormed())),
);

const oddQuery = fc.constantFrom(
  ...[
    'limit=0',
    'limit=101',
    'limit=-1',
    'limit=1.5',
    'limit=1e1',
    'limit=NaN',
    'limit=',
    'limit',
    'limit=%31',
    'limit=+5',
  ],
  ...[
    'limit=99999999999999999999',
    'limit=1&limit=2',
    'limit[]=1',
    'cursor=',
    'cursor=a',
    'cursor=%00',
    'cursor=a&cursor=b',
  ],
  ...['cursor=AAAAAAAAAAAAAAAAAAAA', `cursor=${'A'.repeat(200)}`, `cursor=${'A'.repeat(5000)}`, 'cursor=%F0%9F%98%80'],
  ...[
    '__proto__=1',
    '__proto__=1&__proto__=2',
    '__proto__[limit]=1',
    'constructor=1',
    '%',
    '%zz=1',
    'a=%',
    'a=%ff',
    '%00=%00',
  ],
  ...[
    '=',
    '&&&',
    '?',
    'a=b=c',
    'unknown=1',
    `${'q'.repeat(5000)}=1`,
    'toString',
    '%5F%5Fproto%5F%5F=1',
    'limit=5;limit=6',
  ],
  ...['token=x', 'Api_Key=x', 'a=1&%74oken=x', 'access_token', 'project_id=prj_0', 'project_id=%F0%9F'],
);

const oddHeaders = fc.oneof(
  fc
    .constantFrom('', ' ', 'x'.repeat(256), '\u00e9', 'a b', '~'.repeat(255), 'a,b')
    .map((value) => ({ 'idempotency-key': value })),
  fc.string({ unit: 'grapheme-ascii', minLength: 1, maxLength: 50 }).map((value) => ({ 'idempotency-key': value })),
  fc
    .constantFrom('', '*', '"', '"v1"', 'W/"v1"', '"v999"', ','.repeat(3000), '\u00ff', '"v1", "v2"', 'v1')
    .map((value) => ({ 'if-match': value })),
  fc
    .constantFrom(
      '',
      'Bearer',
      'Bearer ',
      'Basic YTpi',
      `Bearer ${'x'.repeat(8000)}`,
      'Bearer \u00e9',
      'Bearer a b',
      'Bearer a, Bearer b',
    )
    .map((value) => ({ authorization: value })),
  fc
    .constantFrom(
      'text/plain',
      '',
      ';;;',
      'application/json; charset=utf-16',
      'APPLICATION/JSON',
      'application/json;',
      'a/b',
      '\u00e9/\u00e9',
    )
    .map((value) => ({ 'content-type': value })),
  fc.constantFrom<Record<string, string>>(
    { 'content-encoding': 'gzip' },
    { 'accept-version': '99.x' },
    { accept: 'image/png;q=nonsense' },
    { 'x-request-id': 'mine' },
    { 'x-forwarded-for': "' or 1=1" },
    { 'x-http-method-override': 'DELETE' },
    { 'if-none-match': '*' },
    { range: 'bytes=9-1' },
    { expect: '100-continue' },
    { cookie: '='.repeat(2000) },
    { 'x-long': 'x'.repeat(7000) },
  ),
);

/** `fixture` is read when a request is made, because what it names comes and goes. */
export function requestsOf(operation: Operation, fixture: Fixture): fc.Arbitrary<StormRequest> {
  const names = [...operation.path.matchAll(/\{(\w+)\}/g)].map((match) => match[1]!);
  const real = (name: string): fc.Arbitrary<{ name: string; pick: number } | string> => {
    if (fixture.params[name]) return fc.nat(100).map((pick) => ({ name, pick }));
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
    .record({ segments, query, headers, body: bodyOf(operation.body) })
    .map(({ segments, query, headers, body }) => {
      const filled = segments.map((segment) => {
        if (typeof segment === 'string') return segment;
        const known = fixture.params[segment.name]!;
        return known[segment.pick % known.length]!;
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
