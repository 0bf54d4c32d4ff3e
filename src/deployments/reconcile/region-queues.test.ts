import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RegionQueues } from './region-queues.ts';

test('a region that hangs takes its own workers alone; what waits runs as they get free', async () => {
  const queues = new RegionQueues();
  const released = Promise.withResolvers<void>();
  const done: string[] = [];
  for (let n = 0; n < 20; n++) {
    queues.add('far', async () => {
      await released.promise;
      done.push(`far ${n}`);
    });
  }
  const near = Promise.withResolvers<void>();
  queues.add('near', async () => near.resolve());
  await near.promise;
  assert.deepEqual(done, []);
  const last = Promise.withResolvers<void>();
  queues.add('far', async () => last.resolve());
  released.resolve();
  await last.promise;
  assert.deepEqual(
    done,
    Array.from({ length: 20 }, (_, n) => `far ${n}`),
  );
});

test('stopping drops what waits, and waits for what runs', async () => {
  const queues = new RegionQueues();
  const released = Promise.withResolvers<void>();
  let ran = 0;
  for (let n = 0; n < 40; n++) {
    queues.add('far', async () => {
      await released.promise;
      ran++;
    });
  }
  const stopped = queues.stop();
  released.resolve();
  await stopped;
  assert.equal(ran, 16);
});
