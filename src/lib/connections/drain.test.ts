import assert from 'node:assert/strict';
import { once } from 'node:events';
import { Agent, createServer, get, type IncomingMessage, type ServerResponse } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { buffer, text } from 'node:stream/consumers';
import { test } from 'node:test';
import { trackConnections } from './drain.ts';

async function startServer(respond: (request: IncomingMessage, response: ServerResponse) => void) {
  const server = createServer(respond);
  const connections = trackConnections(server);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return { connections, port, url: `http://127.0.0.1:${port}/` };
}

test('a response that was ended and not yet taken arrives whole, then its connection closes', async () => {
  const size = 32 * 1024 * 1024;
  const ended = Promise.withResolvers<ServerResponse>();
  const { connections, url } = await startServer((_, response) => {
    response.end(Buffer.alloc(size));
    ended.resolve(response);
  });
  const agent = new Agent({ keepAlive: true });
  const [response] = (await once(get(url, { agent }), 'response')) as [IncomingMessage];
  assert.ok((await ended.promise).writableEnded);
  const closed = connections.closeWhenIdle();
  assert.equal((await buffer(response)).length, size);
  await closed;
  agent.destroy();
});

test('connections without a request close, one whose request is on its way gets its response', async () => {
  const { connections, port, url } = await startServer((_, response) => void response.end('late'));
  const silent = connect(port, '127.0.0.1');
  const halfway = connect(port, '127.0.0.1');
  await Promise.all([once(silent, 'connect'), once(halfway, 'connect')]);
  halfway.write('GET / HTTP/1.1\r\n');
  await text((await once(get(url, { agent: false }), 'response'))[0]); // by then the server has read the half
  const closed = connections.closeWhenIdle();
  await once(silent.resume(), 'close');
  halfway.write('Host: a\r\nConnection: close\r\n\r\n');
  assert.match(await text(halfway), /^HTTP\/1\.1 200 OK\r\n[\s\S]*\r\n\r\nlate$/);
  await closed;
});
