import assert from 'node:assert/strict';
import { test } from 'node:test';
import { hasTooManyValues, maxValues } from './json-values.ts';

const has = (value: unknown) => hasTooManyValues(Buffer.from(JSON.stringify(value)));
const many = (count: number) => Array.from({ length: count }, (_, n) => n);

test('values are counted wherever they are', () => {
  assert.equal(has(many(maxValues)), false);
  assert.equal(has(many(maxValues + 1)), true);
  assert.equal(has(Object.fromEntries(many(maxValues + 1).map((n) => [`v${n}`, 'a']))), true);
  assert.equal(has(many(maxValues / 100).map(() => many(102))), true);
});

test('commas in texts do not count', () => {
  for (const text of [',', '",', '\\', '\\",', '\\\\",'])
    assert.equal(has({ text: text.repeat(100_000) }), false, text);
  assert.equal(has(['\\', ...many(maxValues)]), true);
});
