// What has to be done now and then.
import { deleteAlertsBefore } from '../alerts/queries.ts';
import { sweepIdempotencyKeys } from '../http/api/idempotency.ts';
import type { RateCells } from '../http/api/rate-cells.ts';
import { startLoop } from '../lib/loop.ts';
import type { Regions } from '../regions/regions.ts';
import type { LastUsed } from '../tokens/last-used.ts';
import type { Common } from './common.ts';

const dayMs = 86_400_000;

interface HousekeepingParts extends Pick<Common, 'db' | 'clock' | 'log'> {
  cells: RateCells;
  lastUsed: LastUsed;
  regions: Regions;
  alertsKeptDays: number;
}

export function startHousekeeping({ db, clock, log, cells, lastUsed, regions, alertsKeptDays }: HousekeepingParts) {
  const every = (intervalMs: number, name: string, step: () => Promise<void>) =>
    startLoop({ intervalMs, step, onError: (error) => log.error({ err: error, loop: name }, 'a loop failed') });
  const loops = [
    // One each: a region whose engine hangs delays the checks of no other.
    ...regions.all().map(({ name }) => every(2_000, `health of region ${name}`, () => regions.check(name))),
    every(10_000, 'last use of tokens', () => lastUsed.flush(db)),
    every(60_000, 'rate limit cells', () => cells.sweep(clock.now())),
    every(600_000, 'idempotency keys', () => sweepIdempotencyKeys(db, clock.now())),
    every(3_600_000, 'old alerts', () => deleteAlertsBefore(db, clock.now() - alertsKeptDays * dayMs)),
  ];
  return {
    async stop(): Promise<void> {
      await Promise.all(loops.map((loop) => loop.stop()));
      await lastUsed.flush(db).catch((error) => log.warn({ err: error }, 'last use of tokens not written'));
    },
  };
}
