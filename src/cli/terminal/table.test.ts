import assert from 'node:assert/strict';
import { test } from 'node:test';
import { layOut, pairs } from './table.ts';
import { widthOf } from './width.ts';

const cells = (...rows: string[][]) => rows.map((row) => row.map((text) => ({ text })));

test('columns stand below each other, and nothing is cut away from a terminal', () => {
  const long = 'x'.repeat(300);
  assert.deepEqual(layOut(cells(['ID', 'NAME'], ['prj_1', 'Shop'], ['p', long]), { columns: null }), [
    'ID     NAME',
    'prj_1  Shop',
    `p      ${long}`,
  ]);
});

test('numbers stand right', () => {
  assert.deepEqual(layOut(cells(['n', 'x'], ['10', 'y']), { columns: null, right: new Set([0]) }), [' n  x', '10  y']);
});

test('no line is wider than the terminal, whatever the cells hold', () => {
  const rows = cells([
    'dpl_01k9xw3v5qfk2t8m7c4b6d9e0h',
    'production',
    'registry.example/team/shop:1.42',
    'succeeded',
    '店'.repeat(40),
  ]);
  for (const columns of [50, 60, 80, 120]) {
    for (const line of layOut(rows, { columns })) assert.ok(widthOf(line) < columns, `${columns}: ${line}`);
  }
});

test('colour is put on what is shown, not on the space beside it', () => {
  const paint = (text: string) => `<${text}>`;
  assert.deepEqual(
    layOut(
      [
        [{ text: 'a', paint }, { text: 'b' }],
        [{ text: 'ccc' }, { text: 'd' }],
      ],
      { columns: null },
    ),
    ['<a>    b', 'ccc  d'],
  );
});

test('pairs', () =>
  assert.deepEqual(
    pairs([
      ['a', '1'],
      ['long', ''],
    ]),
    ['a     1', 'long'],
  ));
