import assert from 'node:assert/strict';
import { test } from 'node:test';
import { pino } from 'pino';
import type { Timers } from './clock.ts';
import { StopSteps } from './stop-steps.ts';

/** Every wait is over at once. */
const impatient: Timers = {
  now: () => 0,
  after: (_delayMs, work) => {
    const soon = setImmediate(work);
    return () => clearImmediate(soon);
  },
};

test('a step that throws, rejects or never ends is logged by name, and those after it run all the same', async () => {
  const lines: { part: string; err: { message: string } }[] = [];
  const log = pino({ level: 'error' }, { write: (line) => void lines.push(JSON.parse(line)) });
  const stopped: string[] = [];
  const steps = new StopSteps(log, impatient);
  steps.add('database', () => stopped.push('database'));
  steps.add('router', () => {
    throw new Error('broken');
  });
  steps.add('webhooks', async () => {
    throw new Error('rejected');
  });
  steps.add('reconciler', () => new Promise(() => {}));
  steps.add('server', async () => stopped.push('server'));
  await steps.run();
  assert.deepEqual(stopped, ['server', 'database']);
  assert.deepEqual(
    lines.map(({ part, err }) => [part, err.message]),
    [
      ['reconciler', 'it took longer than 20 s'],
      ['webhooks', 'rejected'],
      ['router', 'broken'],
    ],
  );
});

test('they run once, however often they are asked to', async () => {
  let count = 0;
  const steps = new StopSteps(pino({ level: 'silent' }));
  steps.add('only', () => count++);
  await Promise.all([steps.run(), steps.run()]);
  await steps.run();
  assert.equal(count, 1);
});
