// What a request means, without a server: ranges, conditions, encodings, paths.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { acceptedEncodings, evaluate, honoursRange, parseRange, requestPath } from './request-rules.ts';

const parts = (...ranges: [number, number][]) => ({
  kind: 'parts',
  parts: ranges.map(([start, end]) => ({ start, end })),
});
const whole = { kind: 'whole' };

for (const [header, expected] of [
  [undefined, whole],
  ['bytes=0-9', parts([0, 9])],
  ['bytes=90-', parts([90, 99])],
  ['bytes=-10', parts([90, 99])],
  ['bytes=-200', parts([0, 99])],
  ['bytes=50-500', parts([50, 99])],
  ['bytes=0-0, 99-99', parts([0, 0], [99, 99])],
  ['bytes=0-0,200-300', parts([0, 0])],
  ['bytes=100-', { kind: 'unsatisfiable' }],
  ['bytes=-0', { kind: 'unsatisfiable' }],
  ['bytes=9-0', whole],
  ['bytes=a-b', whole],
  ['items=0-9', whole],
  ['bytes=0-99,0-99', whole],
  [`bytes=${Array(17).fill('0-0').join(',')}`, whole],
] as const) {
  test(`Range ${header} of 100 bytes`, () => assert.deepEqual(parseRange(header, 100), expected));
}

test('no Range header leads outside the file', () => {
  fc.assert(
    fc.property(fc.stringMatching(/^bytes=[0-9,\- ]{1,30}$/), fc.integer({ min: 1, max: 1000 }), (header, size) => {
      const answer = parseRange(header, size);
      if (answer.kind === 'parts')
        for (const { start, end } of answer.parts) assert.ok(start >= 0 && start <= end && end < size);
    }),
  );
});

const file = { etag: '"abc"', mtimeMs: Date.UTC(2026, 0, 1, 0, 0, 0, 500) };
const date = new Date(file.mtimeMs).toUTCString();
const earlier = new Date(file.mtimeMs - 5000).toUTCString();

for (const [headers, expected] of [
  [{}, 'send'],
  [{ 'if-none-match': '"abc"' }, 'not-modified'],
  [{ 'if-none-match': 'W/"abc"' }, 'not-modified'],
  [{ 'if-none-match': '"x", "abc"' }, 'not-modified'],
  [{ 'if-none-match': '*' }, 'not-modified'],
  [{ 'if-none-match': '"x"', 'if-modified-since': date }, 'send'],
  [{ 'if-modified-since': date }, 'not-modified'],
  [{ 'if-modified-since': earlier }, 'send'],
  [{ 'if-modified-since': 'yesterday' }, 'send'],
  [{ 'if-match': '"abc"' }, 'send'],
  [{ 'if-match': '"x"' }, 'failed'],
  [{ 'if-match': 'W/"abc"' }, 'failed'],
  [{ 'if-unmodified-since': earlier }, 'failed'],
  [{ 'if-unmodified-since': date }, 'send'],
] as const) {
  test(`${JSON.stringify(headers)} gives ${expected}`, () => assert.equal(evaluate(headers, file), expected));
}

test('If-Range lets a range count only for the same bytes', () => {
  assert.deepEqual(
    [undefined, '"abc"', 'W/"abc"', '"x"', date, earlier, 'nonsense'].map((header) => honoursRange(header, file)),
    [true, true, false, false, true, false, false],
  );
});

for (const [header, expected] of [
  [undefined, []],
  ['br, gzip', ['br', 'gzip']],
  ['gzip', ['gzip']],
  ['gzip;q=1.0, br;q=0.5', ['gzip', 'br']],
  ['br;q=0, gzip', ['gzip']],
  ['*', ['br', 'gzip']],
  ['*, br;q=0', ['gzip']],
  ['identity', []],
] as const) {
  test(`Accept-Encoding ${header}`, () => assert.deepEqual(acceptedEncodings(header), expected));
}

for (const [target, expected] of [
  ['/', 'index.html'],
  ['/?x', 'index.html'],
  ['/api/streams.json?v=1', 'api/streams.json'],
  ['/media/a/%33.mp4', 'media/a/3.mp4'],
  ['/media/../x', null],
  ['/media/%2e%2e/x', null],
  ['/media/..%2fx', null],
  ['/%2e%2e%2f%2e%2e%2fetc/passwd', null],
  ['/media\\..\\x', null],
  ['/media/%5c..%5cx', null],
  ['/.git/config', null],
  ['/media/.hidden', null],
  ['//etc/passwd', null],
  ['/media/', null],
  ['/a%00b', null],
  ['/%zz', null],
  ['/%252e%252e/x', '%2e%2e/x'],
  ['media/x', null],
  ['http://x/y', 'y'],
  ['HTTPS://x:8080/media/a?b#c', 'media/a'],
  ['http://x', 'index.html'],
  ['http://x?y', 'index.html'],
  ['http:///y', null],
  ['http://x/../y', null],
  ['ftp://x/y', null],
  [undefined, null],
] as const) {
  test(`the target ${target} is ${expected}`, () => assert.equal(requestPath(target), expected));
}

test('no target, however it is written, has a step up or a dot file in it', () => {
  const pieces = fc.constantFrom(
    '/',
    '.',
    '..',
    '%2e',
    '%2E',
    '%2f',
    '%5c',
    '\\',
    'media',
    '%00',
    '%25',
    'a',
    '?',
    '#',
  );
  fc.assert(
    fc.property(fc.array(pieces, { maxLength: 12 }), (list) => {
      const path = requestPath(`/${list.join('')}`);
      if (path !== null) assert.ok(!/(^|\/)\.|\\|\0|^\//.test(path), path);
    }),
    { numRuns: 2000 },
  );
});
