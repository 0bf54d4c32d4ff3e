import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { type TestContext, test } from 'node:test';
import { Worker } from 'node:worker_threads';
import { limitTime } from './time-limit.ts';

const limitMs = 100;

/** To a server in a thread of its own, which answers while this one stands still. */
async function connectToEcho(t: TestContext): Promise<Socket> {
  const code = `
    const { createServer } = require('node:net');
    const { parentPort } = require('node:worker_threads');
    const server = createServer((socket) => socket.pipe(socket));
    server.listen(0, '127.0.0.1', () => parentPort.postMessage(server.address().port));`;
  const worker = new Worker(code, { eval: true });
  const [port] = (await once(worker, 'message')) as [number];
  const socket = connect(port, '127.0.0.1');
  await once(socket, 'connect');
  t.after(async () => {
    socket.destroy();
    await worker.terminate();
  });
  return socket;
}

const standStill = (ms: number) => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);

test('an answer that arrived while the process stood still is in time', async (t) => {
  const socket = await connectToEcho(t);
  const outcome = new Promise<string>((resolve) => {
    const limit = limitTime(limitMs, () => resolve('given up'));
    socket.once('data', () => {
      limit.end();
      resolve('answered');
    });
  });
  socket.write('?');
  standStill(5 * limitMs);
  assert.equal(await outcome, 'answered');
});

test('it is over once the time is over, counted from the last restart; not after its end', async () => {
  const begun = performance.now();
  let restarted = 0;
  await new Promise<void>((resolve) => {
    const limit = limitTime(limitMs, resolve);
    setTimeout(() => {
      restarted = performance.now() - begun;
      limit.restart();
    }, limitMs / 2);
  });
  assert.ok(performance.now() - begun >= restarted + limitMs - 1);
  const ended = limitTime(1, () => assert.fail('it had ended'));
  standStill(5);
  ended.end();
  await new Promise((resolve) => setTimeout(resolve, 10));
});
