// Wrong in every way that a request can be: bodies, path segments, queries and headers that no client should send.
import fc from 'fast-check';

/** Stands for arrays in arrays, 10,000 levels deep, which only the text of a body can hold. */
const deepMark = '@deep';
export const asJson = (value: unknown): Buffer =>
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

export const oddValue: fc.Arbitrary<unknown> = fc.oneof(
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

export const oddName = fc.oneof(
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

export const notJson = fc.oneof(
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

export const oddSegment = fc.oneof(
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

export const oddQuery = fc.constantFrom(
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

export const oddHeaders = fc.oneof(
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
