import type { Db } from '../../db/database.ts';
import type { Log } from '../../lib/log.ts';
import type { RegionState } from '../../regions/regions.ts';
import { listInstanceIds } from '../instances.ts';

/** Stops instances that have no row: those of deleted environments, and what a crash or a restarted engine left behind. */
export async function removeOrphans({ db, log }: { db: Db; log: Log }, region: RegionState): Promise<void> {
  if (!region.available) return;
  const found = await region.engine.list().catch(() => []);
  const known = await listInstanceIds(db, region.name);
  for (const { id } of found.filter((instance) => !known.has(instance.id))) {
    log.info({ instance: id, region: region.name }, 'removing an orphan');
    await region.engine.stop(id, 0).catch((error) => log.warn({ err: error, instance: id }, 'orphan not removed'));
  }
}
