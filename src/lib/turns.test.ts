import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Turns } from './turns.ts';

test('owners take turns, however much one of them has put in', () => {
  const turns = new Turns<string>();
  for (let n = 1; n <= 1000; n++) turns.add('a', `a${n}`);
  turns.add('b', 'b1');
  turns.add('c', 'c1');
  turns.add('b', 'b2');
  const taken = Array.from({ length: 7 }, () => turns.next());
  assert.deepEqual(taken, ['a1', 'b1', 'c1', 'a2', 'b2', 'a3', 'a4']);
});

test('an owner has so many under way and no more; others go ahead', () => {
  const turns = new Turns<string>(1);
  for (const item of ['a1', 'a2', 'a3']) turns.add('a', item);
  assert.deepEqual([turns.next(), turns.next()], ['a1', undefined]);
  turns.add('b', 'b1');
  assert.deepEqual([turns.next(), turns.next()], ['b1', undefined]);
  turns.done('a');
  assert.deepEqual([turns.next(), turns.next()], ['a2', undefined]);
  assert.equal(turns.waitingOf('a'), 1);
});
