// A server process for the benchmark: `origin` is the built-in origin, `memory` a bare node:http that sends one file from
// memory, `stream` a bare node:http that sends a range of a file with createReadStream. Prints its port.
import { createReadStream, readFileSync } from 'node:fs';
import { stat } from 'node:fs/promises';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createOrigin } from '../../src/catalogue/origin.ts';

const [kind, path] = process.argv.slice(2) as [string, string];

function fromMemory(): RequestListener {
  const bytes = readFileSync(`${path}/api/streams.json.br`);
  const headers = { 'Content-Type': 'application/json', 'Content-Encoding': 'br', 'Content-Length': bytes.length };
  return (_request, response) => response.writeHead(200, headers).end(bytes);
}

const fromStream: RequestListener = async (request, response) => {
  const file = path + request.url!;
  const { size } = await stat(file);
  const range = /^bytes=(\d+)-(\d+)$/.exec(request.headers.range ?? '');
  const [start, end] = range ? [Number(range[1]), Number(range[2])] : [0, size - 1];
  response.writeHead(range ? 206 : 200, { 'Content-Type': 'video/mp4', 'Content-Length': end - start + 1 });
  createReadStream(file, { start, end }).pipe(response);
};

const listeners = { origin: () => createOrigin(path).handle, memory: fromMemory, stream: () => fromStream };
const server = createServer(listeners[kind as keyof typeof listeners]());
server.listen(0, '127.0.0.1', () => console.log((server.address() as AddressInfo).port));
process.on('SIGTERM', () => process.exit(0));
