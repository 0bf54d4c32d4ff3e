import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createIds, encodeBase32, idPattern } from './ids.ts';

test('100,000 ids of one millisecond are distinct, sorted and of the documented form', () => {
  const next = createIds({ now: () => 1_800_000_000_000 });
  const ids = Array.from({ length: 100_000 }, () => next('prj'));
  assert.equal(new Set(ids).size, ids.length);
  assert.deepEqual([...ids].sort(), ids);
  for (const id of ids) assert.match(id, new RegExp(idPattern('prj')));
});

test('ids sort by time, and a clock that steps back does not break the order', () => {
  const times = [1000, 2000, 1500, 3000];
  const next = createIds({ now: () => times.shift()! });
  const ids = [next('evt'), next('evt'), next('evt'), next('evt')];
  assert.deepEqual([...ids].sort(), ids);
});

test('base32 follows Crockford, most significant bits first', () => {
  assert.equal(encodeBase32(new Uint8Array(16)), '0'.repeat(26));
  assert.equal(encodeBase32(new Uint8Array(16).fill(255)), '7' + 'z'.repeat(25));
});
