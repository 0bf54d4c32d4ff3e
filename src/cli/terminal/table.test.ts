import assert from 'node:assert/strict';
import { test } from 'node:test';
import { clean, cut, fold, layOut, pad, pairs, widthOf } from './table.ts';

test('wide letters and emoji take two columns, colours none, an accent of its own nothing', () => {
  for (const [text, columns] of [
    ['shop', 4],
    ['店', 2],
    ['🚀', 2],
    ['e\u0301', 1],
    ['\x1b[31mred\x1b[0m', 3],
  ] as const) {
    assert.equal(widthOf(text), columns, text);
  }
  assert.equal(pad('店', 4), '店  ');
});

test('cut leaves what fits, and no colour behind', () => {
  assert.equal(cut('deployments', 6), 'deplo…');
  assert.equal(cut('deploy', 6), 'deploy');
  assert.equal(cut('店店店', 4), '店…');
  assert.equal(cut('\x1b[31mdeployments\x1b[0m', 6), '\x1b[31mdeplo…\x1b[0m');
  assert.equal(cut('x', 0), '');
});

test('texts of others cannot steer the terminal', () => {
  assert.equal(clean('a\x1b[2Jb\x1b]0;title\x07c\u009bd\ne\u202e'), 'abcd e');
  assert.ok(!clean('\x1b[2J').includes('\x1b'));
});

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

test('a line that is too long goes on below, broken at blanks and indented; colours take no room', () => {
  assert.deepEqual(fold('id  one two three', 12, 4), ['id  one two', '    three']);
  assert.deepEqual(fold('\x1b[31mone\x1b[39m two', 7, 2), ['\x1b[31mone\x1b[39m two']);
  assert.deepEqual(fold('a  b  c', 5, 2), ['a  b', '  c']);
  assert.deepEqual(fold('a-word-that-is-too-long b', 10, 1), ['a-word-that-is-too-long', ' b']);
  assert.deepEqual(fold('digest  sha256:0123', 13, 8), ['digest', '  sha256:0123']);
  assert.deepEqual(fold('done · next: one · two three', 20, 2), ['done · next: one ·', '  two three']);
  assert.deepEqual(fold('one two three', null, 2), ['one two three']);
  assert.deepEqual(
    pairs(
      [
        ['name', 'one two'],
        ['x', ''],
      ],
      10,
    ),
    ['name  one', '      two', 'x'],
  );
});
