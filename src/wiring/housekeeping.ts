// What has to be done now and then. What is deleted for its age: retention.ts.
import type { RateCells } from '../http/api/rate-cells.ts';
import type { Log } from '../lib/log.ts';
import type { Loops } from '../lib/loops.ts';
import { sweepDeleted } from '../lifecycle/removal.ts';
import type { Regions } from '../regions/regions.ts';
import { subscribe } from '../signals/signals.ts';
import type { LastUsed } from '../tokens/token-queries.ts';
import type { Common } from './common.ts';

interface HousekeepingParts extends Pick<Common, 'db' | 'ids' | 'clock' | 'log' | 'loops'> {
  cells: RateCells;
  lastUsed: LastUsed;
  regions: Regions;
}

export function startHousekeeping(parts: HousekeepingParts) {
  const { db, ids, clock, log, loops, cells, lastUsed, regions } = parts;
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
