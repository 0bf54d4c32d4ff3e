// A receiver of webhooks that can be killed: what arrives is in its file before it is answered.
import { createHash } from 'node:crypto';
import { openSync, writeSync } from 'node:fs';
import { createServer } from 'node:http';

const [port, path] = process.argv.slice(2);
const file = openSync(path!, 'a');

createServer((request, response) => {
  const hash = createHash('sha256');
  request.on('data', (chunk) => hash.update(chunk));
  request.on('end', () => {
    const { 'webhook-id': id, 'x-service-signature': signature } = request.headers;
    if (id) writeSync(file, `${JSON.stringify({ id, sha256: hash.digest('hex'), signature })}\n`);
    response.writeHead(200).end();
  });
}).listen(Number(port), '127.0.0.1');
