import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LogReads } from './log-reads.ts';

test('an account has two reads at a time, and all accounts together four', async () => {
  const reads = new LogReads();
  const { promise: slow, resolve: end } = Promise.withResolvers<string>();
  const start = (accountId: string) => reads.run(accountId, () => slow);
  const running = [start('a'), start('a')];
  await assert.rejects(start('a'), { code: 'busy' });
  running.push(...['b', 'c'].map(start));
  await assert.rejects(start('h'), { code: 'busy' });
  end('read');
  assert.deepEqual(new Set(await Promise.all(running)), new Set(['read']));
  assert.equal(await start('h'), 'read');
});

test('a read that fails makes room too', async () => {
  const reads = new LogReads();
  for (let count = 0; count < 3; count++) {
    await assert.rejects(
      reads.run('a', () => Promise.reject(new Error('away'))),
      { message: 'away' },
    );
  }
});
