// A listening socket that is passed on: what waits to be accepted does not end with the process that opened it.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { listenAt } from '../../src/lib/connections.ts';
import { type ListenerHandle, receiveListeners } from '../../src/lib/pass-listeners.ts';
import { suspend } from '../helpers/children.ts';

const scratch = mkdtempSync(join(tmpdir(), 'sluice-pass-'));
after(() => rmSync(scratch, { recursive: true, force: true }));

const passes = `
  import { createServer } from 'node:net';
  import { connectToPass, listenerOf } from '${new URL('../../src/lib/pass-listeners.ts', import.meta.url)}';
  const servers = [createServer(), createServer()];
  for (const server of servers) await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { socket, pass } = connectToPass(process.argv[1], () => {
    for (const server of servers) pass(listenerOf(server));
    socket.write(servers.map((server) => server.address().port).join());
  });
  socket.on('error', () => {});
`;

test('connections that wait at the sockets of a frozen process are served by the one that it passed them to', async () => {
  const path = join(scratch, 'pass.sock');
  const listeners: ListenerHandle[] = [];
  const { promise: ports, resolve } = Promise.withResolvers<number[]>();
  const receiver = createServer({ pauseOnConnect: true }, (accepted) => {
    let text = '';
    const socket = receiveListeners(accepted, (listener) => listeners.push(listener)).setEncoding('utf8');
    socket.on('data', (more) => {
      text = (text + more).replaceAll('listener\n', '');
      if (text.includes(',')) resolve(text.split(',').map(Number));
    });
  });
  await once(receiver.listen(path), 'listening');
  const child = spawn(process.execPath, ['--input-type=module', '-e', passes, path], { stdio: 'inherit' });
  const exited = once(child, 'exit');
  after(() => child.kill('SIGKILL'));
  const [first, second] = await ports;
  await suspend(child.pid!);
  const waiting = [first!, second!].map((port) => connect(port, '127.0.0.1'));
  await Promise.all(waiting.map((socket) => once(socket, 'connect')));
  child.kill('SIGKILL');
  await exited;
  for (const [index, listener] of listeners.entries()) {
    const server = createServer((socket) => void socket.end(`served by ${index}`));
    await listenAt(server, { _handle: listener });
    assert.deepEqual(server.address(), { address: '127.0.0.1', family: 'IPv4', port: [first, second][index] });
    const [answer] = await once(waiting[index]!, 'data');
    assert.equal(String(answer), `served by ${index}`);
    server.close();
  }
  assert.equal(listeners.length, 2);
  receiver.close();
});
