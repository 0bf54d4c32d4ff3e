import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LogReads } from './log-reads.ts';

/** Reads that end when they are told to, in the order in which they began. */
function heldReads() {
  const reads = new LogReads();
  const began: { name: string; end: () => void }[] = [];
  const start = (accountId: string, name = accountId) =>
    reads.run(accountId, () => {
      const { promise, resolve } = Promise.withResolvers<string>();
      began.push({ name, end: () => resolve(name) });
      return promise;
    });
  const names = async () => {
    await new Promise((resolve) => setImmediate(resolve));
    return began.map(({ name }) => name);
  };
  return { start, began, names };
}

test('an account has one read at a time; the next begins when it has ended', async () => {
  const { start, began, names } = heldReads();
  const all = [start('a', 'first'), start('a', 'second')];
  assert.deepEqual(await names(), ['first']);
  began[0]!.end();
  assert.deepEqual(await names(), ['first', 'second']);
  began[1]!.end();
  assert.deepEqual(await Promise.all(all), ['first', 'second']);
});

test('all accounts together have four, in the order in which they came; none waits for the reads of another', async () => {
  const { start, began, names } = heldReads();
  for (const account of ['a', 'a', 'b', 'c', 'd', 'e']) void start(account);
  assert.deepEqual(await names(), ['a', 'b', 'c', 'd']);
  began[1]!.end();
  assert.deepEqual((await names()).slice(4), ['e'], 'the second of a waits for the first');
  began[0]!.end();
  assert.deepEqual((await names()).slice(5), ['a']);
});

test('four of an account wait; one more is refused, and another account is not', async () => {
  const { start, names } = heldReads();
  for (let count = 0; count < 5; count++) void start('a');
  await assert.rejects(start('a'), { code: 'busy' });
  void start('b');
  assert.deepEqual(await names(), ['a', 'b']);
});

test('a read that fails makes room too', async () => {
  const reads = new LogReads();
  const fail = () => reads.run('a', () => Promise.reject(new Error('away')));
  for (const result of await Promise.allSettled([fail(), fail(), fail()])) assert.equal(result.status, 'rejected');
  assert.equal(await reads.run('a', async () => 'read'), 'read');
});
