import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { slugOf, suffixed } from './project-slugs.ts';

test('names become slugs', () => {
  assert.equal(slugOf('My Shop'), 'my-shop');
  assert.equal(slugOf('Crème Brûlée №1'), 'creme-brulee-no1');
  assert.equal(slugOf('42 is the answer'), 'is-the-answer');
  assert.equal(slugOf('日本'), 'project');
});

test('any name gives a valid slug, with any suffix', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), fc.stringMatching(/^-[a-z0-9]{1,8}$/), (name, suffix) => {
      assert.match(suffixed(slugOf(name), suffix), /^[a-z][a-z0-9-]{0,38}$/);
    }),
  );
});
