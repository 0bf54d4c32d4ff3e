import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Memo } from './bounded-cache.ts';

test('computes a value once, starts over when full, and remembers no failure', () => {
  const memo = new Memo<string | null>(2);
  const computed: string[] = [];
  const get = (key: string) =>
    memo.get(key, () => {
      computed.push(key);
      return key === 'none' ? null : key.toUpperCase();
    });
  assert.deepEqual([get('a'), get('none'), get('a'), get('none')], ['A', null, 'A', null]);
  assert.deepEqual(computed, ['a', 'none']);
  assert.deepEqual([get('c'), get('c'), get('a')], ['C', 'C', 'A']);
  assert.deepEqual(computed, ['a', 'none', 'c', 'a']);
  memo.clear();
  assert.throws(() =>
    memo.get('a', () => {
      throw new Error('not now');
    }),
  );
  assert.equal(get('a'), 'A');
});
