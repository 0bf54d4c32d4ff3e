import assert from 'node:assert/strict';
import { test } from 'node:test';
import { bar, clock, createProgress } from './catalogue-progress.ts';

function written(isTTY: boolean, times: number[]) {
  const output = { isTTY, columns: 60, text: '', write: (text: string) => (output.text += text) };
  const progress = createProgress(output, () => times.shift() ?? 0);
  progress.report({ kind: 'plan', encode: 2, keep: 3 });
  progress.report({ kind: 'start', id: 'film' });
  for (const share of [0.1, 0.3, 0.31, 0.6, 0.9]) progress.report({ kind: 'progress', id: 'film', share });
  progress.report({ kind: 'finish', id: 'film' });
  progress.end();
  return output.text;
}

test('away from a terminal: a line at the start, at each quarter and at the end, and no control codes', () => {
  const expected = ['2 to encode, 3 as they are', 'film: encoding', 'film: 25 %', 'film: 50 %', 'film: 75 %'];
  assert.equal(written(false, []), `${[...expected, 'film: ready (1 of 2)'].join('\n')}\n`);
});

test('on a terminal: a bar with the time left, never wider than the terminal', () => {
  const text = written(true, [0, 0, 0, 0, 10_000, 10_000, 30_000, 30_000]);
  assert.match(text, /█+░+ +15 % 00:57 left/);
  for (const line of text.split(/\r\x1b\[K|\n/)) assert.ok(line.length < 60, line);
});

test('bars and clocks', () => {
  assert.equal(bar(0.5, 4), '██░░');
  assert.equal(bar(7, 2), '██');
  assert.deepEqual([5, 65, 3661].map(clock), ['00:05', '01:05', '1:01:01']);
});
