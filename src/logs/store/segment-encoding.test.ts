import assert from 'node:assert/strict';
import { test } from 'node:test';
import { encodeLines, timeText } from '../../lib/log-lines.ts';
import { bitsOf, compress, decompress, filterOf, filterText, mayContain } from './segment-encoding.ts';

const start = Date.UTC(2026, 10, 15);
const linesOf = (texts: string[]) =>
  encodeLines(texts.map((text, index) => ({ time: timeText(start + index), stream: 'stdout', text })));
const idOf = (n: number) => ((n * 2_654_435_761) >>> 0).toString(16).padStart(8, '0').repeat(2);
const texts = Array.from({ length: 3000 }, (_, n) => `GET /orders/${n} trace=${idOf(n)} für ${n % 7}`);
const raw = linesOf(texts);

test('every part of what is in it may be in it, in either case; most of what is not, is not', () => {
  const filter = filterText(raw);
  const has = (text: string) => mayContain(filter, bitsOf(text));
  for (const [n, text] of texts.entries()) {
    const part = text.slice(n % 20, 10 + (n % 30) + (n % 20));
    assert.ok(has(part) && has(part.toUpperCase()), part);
  }
  assert.ok(has('Für') && has('Trace='), 'also what is too short to tell');
  const absent = Array.from({ length: 1000 }, (_, n) => idOf(n + 5000)).filter((id) => !has(id));
  assert.ok(absent.length > 990, `${absent.length} of 1000 other ids are known to be absent`);
  assert.ok(!has('timeout') && !has('2026-11'), 'the time is not part of the text');
});

test('it is small where the same is printed again and again', () => {
  assert.equal(filterText(linesOf(Array.from({ length: 5000 }, () => 'yes, the same again'))).length, 64);
});

test('it travels in front of the compressed lines, which are read as if it were not there', async () => {
  const bytes = await compress(raw, true);
  assert.deepEqual(filterOf(bytes), Buffer.from(filterText(raw)));
  assert.deepEqual(decompress(bytes, raw.length), raw);
  assert.deepEqual(decompress(bytes, 10), raw);
  assert.equal(filterOf(await compress(raw)), null);
});
