import assert from 'node:assert/strict';
import { test } from 'node:test';
import { encodeLines, type TimedLine, timeText } from '../../lib/log-lines.ts';
import { type ScanQuery, scan } from './scan.ts';

const start = Date.UTC(2026, 10, 15);
const everything: ScanQuery = {
  from: timeText(0),
  to: timeText(start + 1e9),
  kind: null,
  search: null,
  order: 'oldest',
  limit: 100,
  beyond: null,
};

const linesOf = (...texts: (string | [string, TimedLine['stream']])[]): Buffer =>
  encodeLines(
    texts.map((item, index) => {
      const [text, stream] = typeof item === 'string' ? [item, 'stdout' as const] : item;
      return { time: timeText(start + index), stream, text };
    }),
  );

const textsOf = (raw: Buffer, query: Partial<ScanQuery> = {}): string[] =>
  scan(raw, { ...everything, ...query }).map(({ text }) => text);

const trace = linesOf(
  'started',
  ['Error: timeout', 'stderr'],
  'between',
  ['    at connect (net.js:1)', 'stderr'],
  ['Caused by: Error: refused', 'stderr'],
  'ended',
);

test('a stack trace is one entry, whatever the other stream prints between its lines', () => {
  const error = 'Error: timeout\n    at connect (net.js:1)\nCaused by: Error: refused';
  assert.deepEqual(textsOf(trace), ['started', error, 'between', 'ended']);
  assert.deepEqual(textsOf(trace, { search: 'refused' }), [error], 'found by any of its lines');
  assert.deepEqual(textsOf(trace, { search: 'connect' }), [error]);
  assert.deepEqual(textsOf(trace, { search: 'e' }), ['started', error, 'between', 'ended'], 'once each');
});

test('small letters find capitals, capitals only themselves', () => {
  const raw = linesOf('Timeout', 'timeout', 'TIMEOUT Ä', 'other ä');
  assert.deepEqual(textsOf(raw, { search: 'timeout' }), ['Timeout', 'timeout', 'TIMEOUT Ä']);
  assert.deepEqual(textsOf(raw, { search: 'Timeout' }), ['Timeout']);
  assert.deepEqual(textsOf(raw, { search: 'ä' }), ['TIMEOUT Ä', 'other ä']);
  assert.deepEqual(textsOf(linesOf('a+b (c)', 'aab c'), { search: 'a+b (c)' }), ['a+b (c)'], 'no pattern');
  assert.deepEqual(textsOf(raw, { search: '2026' }), [], 'the time is not part of the text');
});

test('order, limit, stream, times and the entry to go on behind', () => {
  const raw = linesOf('0', ['1', 'stderr'], '2', '3');
  assert.deepEqual(textsOf(raw, { order: 'newest', limit: 2 }), ['3', '2']);
  assert.deepEqual(textsOf(raw, { kind: 'e' }), ['1']);
  assert.deepEqual(textsOf(raw, { from: timeText(start + 1), to: timeText(start + 2) }), ['1', '2']);
  const [, second] = scan(raw, everything);
  const beyond = { time: second!.time, offset: second!.offset };
  assert.deepEqual(textsOf(raw, { beyond }), ['2', '3']);
  assert.deepEqual(textsOf(raw, { beyond, order: 'newest' }), ['0']);
  assert.deepEqual(textsOf(raw, { beyond: { time: null, offset: second!.offset } }), ['2', '3']);
});

test('only a part of the bytes: what continues an entry from before is one of its own', () => {
  const raw = linesOf('Error', '  at one', '  at two');
  const fromByte = raw.indexOf('\n') + 1;
  const found = scan(raw, { ...everything, within: { fromByte, toByte: raw.length } });
  assert.deepEqual(
    found.map(({ offset, text }) => [offset, text]),
    [[fromByte, '  at one\n  at two']],
  );
});

test('a line that was stored in pieces is one text', () => {
  const long = `${'x'.repeat(16_383)}ä${'y'.repeat(100)}`;
  assert.deepEqual(textsOf(linesOf(long, 'next')), [long, 'next']);
});

test('text beyond ASCII and long repetitions are found by reading the bytes once', () => {
  const megabytes = linesOf(...Array.from({ length: 160 }, () => '人'.repeat(5000)), `${'人'.repeat(100)}Z`);
  const repeated = linesOf(...Array.from({ length: 160 }, () => 'ab'.repeat(7500)));
  const continued = linesOf(...Array.from({ length: 20_000 }, (_, n) => ` at ${n} z`), 'other');
  const startedAt = process.cpuUsage();
  assert.deepEqual(textsOf(megabytes, { search: '人z' }), [`${'人'.repeat(100)}Z`]);
  assert.deepEqual(textsOf(repeated, { search: `${'ab'.repeat(98)}ac` }), []);
  assert.ok(textsOf(continued, { search: 'z' }).length < 60, 'entries of up to 500 lines');
  const { user, system } = process.cpuUsage(startedAt);
  // It was minutes for the first of these alone.
  assert.ok(user + system < 5_000_000, `${(user + system) / 1000} ms`);
});

test('a page has a bounded size', () => {
  const raw = linesOf(...Array.from({ length: 200 }, () => 'x'.repeat(15_000)));
  const found = textsOf(raw, { limit: 1001 });
  assert.ok(found.length > 10 && found.length < 100, `${found.length} entries of 15,000 characters`);
});
