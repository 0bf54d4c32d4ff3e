import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { BuildEvent } from '../../catalogue/build.ts';
import { bar, clock, createProgress } from './catalogue-progress.ts';

function terminal(isTTY: boolean) {
  const output = { isTTY, columns: 60, text: '', write: (text: string) => (output.text += text) };
  let nowMs = 0;
  const progress = createProgress(output, () => nowMs);
  const at = (seconds: number, event: BuildEvent) => {
    nowMs = seconds * 1000;
    progress.report(event);
  };
  return { output, progress, at };
}

/** What a terminal shows after it was sent a text: lines up to the cursor. */
function screen(text: string): string[] {
  const lines = [''];
  let row = 0;
  for (const [part] of text.matchAll(/\x1b\[(\d*)[A-Z]|\n|\r|[^\x1b\n\r]+/g)) {
    const up = /^\x1b\[(\d+)A$/.exec(part);
    if (up) row -= Number(up[1]);
    else if (part === '\x1b[J') lines.splice(row, lines.length, '');
    else if (part === '\n') lines[++row] ??= '';
    else if (part !== '\r') lines[row] += part;
  }
  return lines.slice(0, row);
}

function build({ progress, at }: ReturnType<typeof terminal>): void {
  at(0, { kind: 'plan', encode: 2, keep: 3 });
  at(0, { kind: 'start', id: 'film' });
  for (const [i, share] of [0.1, 0.3, 0.31, 0.6, 0.9].entries()) at(i, { kind: 'progress', id: 'film', share });
  at(9, { kind: 'finish', id: 'film' });
  progress.end();
}

test('away from a terminal: a line at the start, at each quarter and at the end, and no control codes', () => {
  const away = terminal(false);
  build(away);
  const expected = ['2 to encode, 3 as they are', 'film: encoding', 'film: 25 %', 'film: 50 %', 'film: 75 %'];
  assert.equal(away.output.text, `${[...expected, 'film: ready (1 of 2)'].join('\n')}\n`);
});

test('on a terminal: a bar for each stream and one for all, each with the time left', () => {
  const { output, progress, at } = terminal(true);
  at(0, { kind: 'plan', encode: 4, keep: 0 });
  for (const id of ['film', 'an-id-of-more-letters-than-fit']) at(0, { kind: 'start', id });
  at(10, { kind: 'progress', id: 'film', share: 0.5 });
  at(10, { kind: 'start', id: 'short' });
  at(10, { kind: 'note', text: 'film: not carried over: subtitle track 3' });
  at(11, { kind: 'finish', id: 'short' });
  assert.deepEqual(screen(output.text), [
    '4 to encode, 0 as they are',
    'film: not carried over: subtitle track 3',
    `film                 ${bar(0.5, 14)}  50 % 00:11 left`,
    `an-id-of-more-lette… ${bar(0, 14)}   0 %`,
    `all                  ${bar(0.375, 14)}  37 % 1 of 4 00:18 left`,
  ]);
  progress.end();
  assert.equal(screen(output.text).length, 2, 'only what was told stays');
});

test('a terminal is never filled with bars, and redrawn ten times a second at most', () => {
  const { output, at } = terminal(true);
  at(0, { kind: 'plan', encode: 30, keep: 0 });
  for (let i = 0; i < 20; i++) at(0, { kind: 'start', id: `s${i}` });
  const shown = screen(output.text);
  assert.equal(shown.length, 1 + 7 + 2);
  assert.equal(shown.at(-2), 'and 13 more');
  const before = output.text.length;
  for (let i = 1; i < 10; i++) at(i / 100, { kind: 'progress', id: 's0', share: i / 10 });
  assert.equal(output.text.length, before);
  at(0.11, { kind: 'progress', id: 's0', share: 1 });
  assert.ok(output.text.length > before);
});

test('bars and clocks', () => {
  assert.equal(bar(0.5, 4), '██░░');
  assert.equal(bar(7, 2), '██');
  assert.deepEqual([5, 65, 3661].map(clock), ['00:05', '01:05', '1:01:01']);
});
