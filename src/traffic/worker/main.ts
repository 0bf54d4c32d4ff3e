// The entry of a router worker, which its supervisor starts with its sockets and a channel. It ends on SIGTERM once its
// requests have. If its supervisor is killed it serves on, until the next one has workers of its own.
import '../../lib/source-stacks.ts';
import { systemClock } from '../../lib/clock.ts';
import { createLog } from '../../lib/log.ts';
import { startHeartbeat, waitForSuccessors } from '../../lib/supervised.ts';
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

let isEnding = false;
async function end(why: string): Promise<void> {
  if (isEnding) return;
  isEnding = true;
  log.info({ why }, 'draining');
  await worker.stop();
  log.flush(() => process.exit(0));
}

process.on('SIGTERM', () => void end('SIGTERM'));
process.on('SIGINT', () => {}); // of a terminal, which its supervisor gets too
process.on('disconnect', async () => {
  if (isEnding) return;
  log.warn('the supervisor has ended: serving on until the next one takes over');
  await waitForSuccessors(settings.supervisorSocket, () => worker.listeners);
  await end('the next supervisor has taken over');
});
startHeartbeat(() => null);
worker.start();
