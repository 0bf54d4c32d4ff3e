import assert from 'node:assert/strict';
import { test } from 'node:test';
import { clean, cut, pad, widthOf } from './width.ts';

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
