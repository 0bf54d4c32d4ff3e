// What the service is measured against: a Fastify route that returns the JSON of $BENCH_JSON and does nothing else.
import type { AddressInfo } from 'node:net';
import Fastify from 'fastify';

const json = JSON.parse(process.env.BENCH_JSON!);
const server = Fastify({ logger: false });
server.get('/v1/projects/:id', async () => json);
await server.listen({ host: '127.0.0.1', port: 0 });
process.on('SIGTERM', () => process.exit(0));
process.send!({ url: `http://127.0.0.1:${(server.server.address() as AddressInfo).port}` });
