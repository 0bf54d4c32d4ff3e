import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Live } from './live.ts';

/** As much of a terminal as the live view needs: lines, a cursor, up, erase to the right and below. */
function terminal(columns: number) {
  const lines: string[] = [''];
  let row = 0;
  let writes = 0;
  const write = (text: string) => {
    writes++;
    for (const [part] of text.matchAll(/\x1b\[\??\d*[A-Za-z]|\r|\n|[^\x1b\r\n]+/g)) {
      const up = /^\x1b\[(\d+)A$/.exec(part);
      if (up) row -= Number(up[1]);
      else if (part === '\x1b[J') lines.length = row + 1;
      else if (part === '\n') {
        row++;
        lines[row] ??= '';
      } else if (!part.startsWith('\x1b') && part !== '\r') lines[row] = part;
      if (part === '\x1b[J') lines[row] = '';
    }
  };
  return { write, columns, rows: 6, isTTY: true, lines: () => lines.slice(0, -1), writes: () => writes };
}

test('redraws in place, keeps what was said above, and leaves nothing behind', () => {
  const screen = terminal(20);
  const live = new Live(screen);
  live.draw(['one', 'two'], ['said first']);
  assert.deepEqual(screen.lines(), ['said first', 'one', 'two']);
  live.draw(['three'], ['said second']);
  assert.deepEqual(screen.lines(), ['said first', 'said second', 'three']);
  live.end();
  assert.deepEqual(screen.lines(), ['said first', 'said second']);
  assert.equal(screen.writes(), 3, 'one write for each redraw, so nothing flickers');
  live.end();
  assert.equal(screen.writes(), 3, 'ending twice is ending once');
});

test('what is drawn fits the terminal in both directions', () => {
  const screen = terminal(10);
  const live = new Live(screen);
  live.draw(Array.from({ length: 20 }, (_, index) => `line number ${index}`));
  assert.equal(screen.lines().length, 5);
  assert.ok(screen.lines().every((line) => line.length < 10));
});
