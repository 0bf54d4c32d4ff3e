// The entry of a router worker, which its supervisor starts with its sockets and a channel. It ends on SIGTERM, or when
// its supervisor has ended, once its requests have.
import '../../lib/source-stacks.ts';
import { systemClock } from '../../lib/clock.ts';
import { createLog } from '../../lib/log.ts';
import type { WorkerSettings } from './agent-protocol.ts';
import { Worker } from './worker.ts';

const settings = JSON.parse(process.env.SLUICE_WORKER!) as WorkerSettings;
delete process.env.SLUICE_WORKER;
const log = createLog({ level: settings.logLevel, format: settings.logFormat }).child({ worker: settings.name });

const worker = new Worker({
  settings,
  clock: systemClock,
  log,
  onReady: () => process.send?.({ ready: true }),
});

async function end(why: string): Promise<void> {
  log.info({ why }, 'draining');
  await worker.stop();
  log.flush(() => process.exit(0));
}

process.on('SIGTERM', () => void end('SIGTERM'));
process.on('SIGINT', () => {}); // of a terminal, which its supervisor gets too
process.on('disconnect', () => void end('the supervisor has ended'));
worker.start();
