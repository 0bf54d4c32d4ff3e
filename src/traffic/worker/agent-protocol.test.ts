import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import { after, test } from 'node:test';
import { type FromWorker, onMessages, sendMessage } from './agent-protocol.ts';

async function connected(): Promise<{ here: Socket; there: Socket }> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const here = connect((server.address() as { port: number }).port, '127.0.0.1');
  const [there] = (await once(server, 'connection')) as [Socket];
  after(() => {
    for (const socket of [here, there]) socket.destroy();
    server.close();
  });
  return { here, there };
}

const busyFor = (ms: number) => {
  for (const until = performance.now() + ms; performance.now() < until; );
};

test('messages that arrive in a row are handled in order, and leave turns for other work', async () => {
  const { here, there } = await connected();
  const seen: number[] = [];
  let turn = 0;
  const perTurn = new Map<number, number>();
  const done = Promise.withResolvers<void>();
  onMessages<FromWorker>(there, (message) => {
    busyFor(1.5);
    seen.push((message as { version: number }).version);
    perTurn.set(turn, (perTurn.get(turn) ?? 0) + 1);
    if (seen.length === 200) done.resolve();
  });
  const count = () => {
    turn++;
    if (seen.length < 200) setImmediate(count);
  };
  count();
  for (let version = 0; version < 200; version++) sendMessage(here, { type: 'applied', version });
  await done.promise;
  assert.deepEqual(
    seen,
    Array.from({ length: 200 }, (_, i) => i),
  );
  assert.ok(Math.max(...perTurn.values()) <= 2, 'at most one before a turn, and one that came with it');
});

test('what a closed connection left is not handled any more', async () => {
  const { here, there } = await connected();
  let handled = 0;
  onMessages<FromWorker>(there, () => {
    busyFor(1.5);
    handled++;
    if (handled === 2) there.destroy();
  });
  here.on('error', () => {});
  for (let version = 0; version < 200; version++) sendMessage(here, { type: 'applied', version });
  await once(there, 'close');
  const then = handled;
  await new Promise((resolve) => setTimeout(resolve, 20));
  assert.equal(handled, then);
  assert.ok(handled < 200);
});
