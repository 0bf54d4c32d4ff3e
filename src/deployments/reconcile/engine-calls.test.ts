import assert from 'node:assert/strict';
import { test } from 'node:test';
import { pino } from 'pino';
import { EngineCalls } from './engine-calls.ts';

const key = { projectId: 'prj_1', environment: 'production' };
const log = pino({ level: 'silent' });

test('calls about one instance run one after another, a failed one included; then nothing of them is left', async () => {
  const done: string[] = [];
  let enqueued = 0;
  const calls = new EngineCalls(log, () => enqueued++);
  const first = Promise.withResolvers<void>();
  calls.run(key, 'ins_1', async () => {
    await first.promise;
    done.push('start');
    throw new Error('the engine is away');
  });
  calls.run(key, 'ins_1', async () => void done.push('stop'));
  calls.run(key, 'ins_2', async () => void done.push('other'));
  assert.deepEqual([...calls.busy()], ['ins_1', 'ins_2']);
  first.resolve();
  await calls.settle();
  assert.deepEqual(done, ['other', 'start', 'stop']);
  assert.equal(calls.busy().size, 0);
  assert.equal(enqueued, 3);
});
