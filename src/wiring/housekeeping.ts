// What has to be done now and then.
import { deleteAlertsBefore } from '../alerts/alert-queries.ts';
import { deleteUsageBefore, usageKeptForMs } from '../deployments/usage-queries.ts';
import { deleteKeptHostsBefore } from '../environments/environment-queries.ts';
import { sweepIdempotencyKeys } from '../http/api/idempotency.ts';
import type { RateCells } from '../http/api/rate-cells.ts';
import type { Log } from '../lib/log.ts';
import type { Loops } from '../lib/loops.ts';
import { sweepDeleted } from '../lifecycle/removal.ts';
import type { Regions } from '../regions/regions.ts';
import { subscribe } from '../signals/signals.ts';
import { deleteSessionsBefore } from '../tokens/session-queries.ts';
import type { LastUsed } from '../tokens/token-queries.ts';
import type { Common } from './common.ts';

const dayMs = 86_400_000;

interface HousekeepingParts extends Pick<Common, 'db' | 'ids' | 'clock' | 'retention' | 'log' | 'loops'> {
  cells: RateCells;
  lastUsed: LastUsed;
  regions: Regions;
  alertsKeptDays: number;
}

export function startHousekeeping(parts: HousekeepingParts) {
  const { db, ids, clock, retention, log, loops, cells, lastUsed, regions, alertsKeptDays } = parts;
  const every = (intervalMs: number, name: string, step: () => Promise<void>) =>
    loops.start({ name, intervalMs, step });
  const removal = every(60_000, 'clearing away what was deleted', async () => {
    if (await sweepDeleted(db, { ids, clock })) removal.wake();
  });
  const unsubscribe = subscribe(db, 'removals', () => removal.wake());
  const running = [
    removal,
    every(10_000, 'heartbeats', async () => reportStuck(loops, log)),
    // One each: a region whose engine hangs delays the checks of no other.
    ...regions.all().map(({ name }) => every(2_000, `health of region ${name}`, () => regions.check(name))),
    every(10_000, 'last use of tokens', () => lastUsed.flush(db)),
    every(60_000, 'rate limit cells', () => cells.sweep(clock.now())),
    every(60_000, 'old usage', async () => deleteUsageBefore(db, (await retention.now()) - usageKeptForMs)),
    every(600_000, 'idempotency keys', async () => sweepIdempotencyKeys(db, await retention.now())),
    every(3_600_000, 'addresses kept for their account', async () => deleteKeptHostsBefore(db, await retention.now())),
    every(3_600_000, 'old sessions', async () => deleteSessionsBefore(db, (await retention.now()) - dayMs)),
    every(3_600_000, 'old alerts', async () =>
      deleteAlertsBefore(db, (await retention.now()) - alertsKeptDays * dayMs),
    ),
  ];
  return {
    async stop(): Promise<void> {
      unsubscribe();
      await Promise.all(running.map((loop) => loop.stop()));
      await lastUsed.flush(db).catch((error) => log.warn({ err: error }, 'last use of tokens not written'));
    },
  };
}

/** `/livez` says the same, where something asks for it. */
function reportStuck(loops: Loops, log: Log): void {
  for (const { name, forMs } of loops.stuck()) {
    log.error({ loop: name, for_s: Math.round(forMs / 1000) }, 'a loop is stuck; restart the process');
  }
}
