import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { follow } from './haproxy-socket.ts';

const dir = mkdtempSync(join(tmpdir(), 'sluice-follow-'));
after(() => rmSync(dir, { recursive: true }));

test('lines that come one by one are read together; the first after a silence at once; the last before the end, too', async () => {
  const path = join(dir, 'ring.sock');
  const server = createServer().listen(path);
  await once(server, 'listening');
  const reads: string[][] = [];
  let isNewRead = true;
  const ended = Promise.withResolvers<void>();
  let onFirst = () => {};
  const first = new Promise<void>((resolve) => {
    onFirst = resolve;
  });
  follow(
    path,
    'show events',
    (line) => {
      if (isNewRead) reads.push([]);
      isNewRead = false;
      setImmediate(() => {
        isNewRead = true;
      });
      reads.at(-1)!.push(line);
      onFirst();
    },
    ended.resolve,
  );
  const [socket] = (await once(server, 'connection')) as [Socket];
  const [command] = await once(socket, 'data');
  assert.equal(String(command), 'show events\n');
  socket.write('first\n');
  await first;
  const bytes = Buffer.from(Array.from({ length: 30 }, (_, n) => `line ${n} é\n`).join(''));
  for (let i = 0; i < bytes.length; i += 5) {
    socket.write(bytes.subarray(i, i + 5));
    await nextTurn();
  }
  socket.end('last\n');
  await ended.promise;
  server.close();
  assert.deepEqual(reads.flat(), ['first', ...Array.from({ length: 30 }, (_, n) => `line ${n} é`), 'last']);
  assert.deepEqual(reads[0], ['first']);
  assert.ok(reads.length <= 4, `${reads.length} reads`);
});
