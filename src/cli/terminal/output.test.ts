import assert from 'node:assert/strict';
import { test } from 'node:test';
import { processIo, type Sink } from '../io.ts';
import { ago, count, createOutput, escapeControls, hasColours, milliseconds, percent, span } from './output.ts';

test('colours only on a terminal that can show them, or where they are asked for', () => {
  const [terminal, pipe]: Sink[] = [{ write() {}, isTTY: true }, { write() {} }];
  assert.equal(hasColours({}, terminal!), true);
  assert.equal(hasColours({}, pipe!), false);
  assert.equal(hasColours({ NO_COLOR: '1' }, terminal!), false);
  assert.equal(hasColours({ NO_COLOR: '' }, terminal!), true);
  assert.equal(hasColours({ TERM: 'dumb' }, terminal!), false);
  assert.equal(hasColours({ FORCE_COLOR: '1', TERM: 'dumb' }, pipe!), true);
  assert.equal(hasColours({ FORCE_COLOR: '0' }, terminal!), false);
});

function written(json: boolean, quiet: boolean, columns?: number) {
  const printed = { out: '', err: '' };
  const stdout = { write: (text: string) => (printed.out += text), ...(columns && { isTTY: true, columns }) };
  const io = {
    ...processIo,
    env: { NO_COLOR: '1' },
    stdout,
    stderr: { write: (text: string) => (printed.err += text) },
  };
  const output = createOutput(io, json, quiet);
  const items = [{ name: 'sh\x1b[2Jop', value: 'x'.repeat(100) }];
  output.list(
    items,
    [
      { title: 'NAME', of: ({ name }) => name },
      { title: 'VALUE', of: ({ value }) => value },
      { title: 'NONE', of: () => null },
    ],
    'nothing',
  );
  output.list([], [], 'nothing');
  return printed;
}

test('a list: a table, its columns cut only on a terminal; what is empty is said on standard error', () => {
  const plain = written(false, false);
  assert.equal(plain.out.split('\n')[1], `shop  ${'x'.repeat(100)}  -`);
  assert.equal(plain.err, 'nothing\n');
  for (const line of written(false, false, 60).out.split('\n')) assert.ok(line.length < 60);
  assert.equal(written(false, true).err, '');
});

test('JSON is one document, with nothing cut', () => {
  const [first, second] = written(true, false).out.trim().split('\n');
  assert.equal(JSON.parse(first!)[0].value.length, 100);
  assert.equal(second, '[]');
});

test('times, shares and sizes in words', () => {
  assert.deepEqual([0, 59_400, 61_000, 3_660_000, 172_800_000].map(span), [
    '0 s',
    '59 s',
    '1 min 1 s',
    '1 h 1 min',
    '2 d',
  ]);
  const now = Date.parse('2026-11-15T12:00:00Z');
  assert.equal(ago('2026-11-15T11:55:30Z', now), '4 min ago');
  assert.equal(ago('2026-11-17T12:00:00Z', now), 'in 2 d');
  assert.equal(ago(new Date(now).toISOString(), now), 'just now');
  assert.equal(ago(null, now), '-');
  assert.deepEqual([null, 0, 0.0512].map(percent), ['-', '0.0 %', '5.1 %']);
  assert.deepEqual([null, 4.04, 120.4, 12_345].map(milliseconds), ['-', '4.0 ms', '120 ms', '12.3 s']);
  assert.deepEqual([7, 1234, 1_234_567].map(count), ['7', '1,234', '1,234,567']);
});

test('JSON holds nothing that a terminal obeys, and reads as what it was', () => {
  const value = { text: 'a\u009b2Jb\u0085c\u202ed\u2028e\x1b[0m' };
  const json = escapeControls(JSON.stringify(value));
  assert.doesNotMatch(json, /[\u0000-\u001f\u007f-\u009f\u2028-\u202e]/);
  assert.deepEqual(JSON.parse(json), value);
});
