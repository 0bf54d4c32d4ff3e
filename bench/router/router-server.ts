// The built-in proxy alone in a process, with the routing table of $BENCH_TABLE and, for every name, the certificate of
// $BENCH_CERTIFICATE.
import { createSecureContext } from 'node:tls';
import { systemClock } from '../../src/lib/clock.ts';
import { createLog } from '../../src/lib/log.ts';
import { createProxy } from '../../src/traffic/proxy/proxy.ts';

const { BENCH_TABLE, BENCH_CERTIFICATE, BENCH_TLS_PORT } = process.env;
const log = createLog({ level: 'warn', format: 'json' });
const issued = BENCH_CERTIFICATE ? JSON.parse(BENCH_CERTIFICATE) : null;
const context = issued && createSecureContext({ cert: issued.certificate, key: issued.key });
const certificates = { contextFor: async () => context, answerChallenge: async () => null };
const proxy = createProxy({ clock: systemClock, log, certificates: issued && certificates });
for (const routes of JSON.parse(BENCH_TABLE!)) proxy.routes.replace(routes);
const at = (port: number) => ({ host: '127.0.0.1', port });
const ports = await proxy.listen(at(0), issued && at(Number(BENCH_TLS_PORT)));
process.on('SIGTERM', () => process.exit(0));
process.send!({ url: `http://127.0.0.1:${ports.http}` });
