// The built-in proxy alone in a process, with the routing table of $BENCH_TABLE.
import { systemClock } from '../../src/lib/clock.ts';
import { createLog } from '../../src/lib/log.ts';
import { startProxy } from '../../src/traffic/proxy.ts';

const log = createLog({ level: 'warn', format: 'json' });
const proxy = await startProxy({ host: '127.0.0.1', port: 0, clock: systemClock, log });
proxy.apply(new Map(JSON.parse(process.env.BENCH_TABLE!)));
process.on('SIGTERM', () => process.exit(0));
process.send!({ url: `http://127.0.0.1:${proxy.port()}` });
