// What has to be done now and then.
import { sweepIdempotencyKeys } from '../http/idempotency.ts';
import type { RateCells } from '../http/rate-cells.ts';
import { startLoop } from '../lib/loop.ts';
import type { Regions } from '../regions/regions.ts';
import type { LastUsed } from '../tokens/last-used.ts';
import type { Common } from './common.ts';

export interface HousekeepingParts extends Pick<Common, 'db' | 'clock' | 'log'> {
  cells: RateCells;
  lastUsed: LastUsed;
  regions: Regions;
}

export function startHousekeeping({ db, clock, log, cells, lastUsed, regions }: HousekeepingParts) {
  const every = (intervalMs: number, name: string, step: () => Promise<void>) =>
    startLoop({ intervalMs, step, onError: (error) => log.error({ err: error, loop: name }, 'a loop failed') });
  const loops = [
    every(2_000, 'region health', () => regions.check()),
    every(10_000, 'last use of tokens', () => lastUsed.flush(db)),
    every(60_000, 'rate limit cells', () => cells.sweep(clock.now())),
    every(600_000, 'idempotency keys', () => sweepIdempotencyKeys(db, clock.now())),
  ];
  return {
    async stop(): Promise<void> {
      await Promise.all(loops.map((loop) => loop.stop()));
      await lastUsed.flush(db).catch((error) => log.warn({ err: error }, 'last use of tokens not written'));
    },
  };
}
