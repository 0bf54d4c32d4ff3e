// Ten receivers in a process of their own that record when each job arrived. The first one hangs on command.
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

const now = () => performance.timeOrigin + performance.now();
let arrived: [number: number, at: number][] = [];
let hanging = false;
/** Count only the other nine: what the first one missed while it hung arrives later, during the next measurement. */
let others = false;

const urls = await Promise.all(
  Array.from({ length: 10 }, async (_, index) => {
    const server = createServer((request, response) => {
      const at = now();
      let body = '';
      request.setEncoding('utf8');
      request.on('data', (chunk) => {
        body += chunk;
      });
      request.on('end', () => {
        if (hanging && index === 0) return;
        if (!others || index !== 0) arrived.push([Number(/"n":(\d+)/.exec(body)![1]), at]);
        response.writeHead(200).end();
      });
    });
    server.keepAliveTimeout = 60_000;
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  }),
);

process.on('message', (message: { ask: 'count' | 'take' | 'hang'; hang?: boolean; others?: boolean }) => {
  if (message.ask === 'count') process.send!({ count: arrived.length });
  if (message.ask === 'take') {
    process.send!({ arrived });
    arrived = [];
  }
  if (message.ask === 'hang') {
    hanging = message.hang!;
    others = message.others!;
    process.send!({});
  }
});
process.on('disconnect', () => process.exit(0));
process.send!({ urls });
