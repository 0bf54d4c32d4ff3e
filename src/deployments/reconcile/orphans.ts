// Instances that no row knows belong to nobody: of deleted environments, of dead revisions, of a crash.
import type { Db } from '../../db/database.ts';
import type { Log } from '../../lib/log.ts';
import type { Regions } from '../../regions/regions.ts';
import { listInstanceIds } from './instances.ts';

export async function removeStrangers({ db, regions, log }: { db: Db; regions: Regions; log: Log }): Promise<void> {
  for (const region of regions.all().filter(({ available }) => available)) {
    const found = await region.engine.list().catch(() => []);
    const known = await listInstanceIds(db, region.name);
    for (const { id } of found.filter((instance) => !known.has(instance.id))) {
      log.info({ instance: id, region: region.name }, 'removing an instance that belongs to nobody');
      await region.engine.stop(id, 0).catch((error) => log.warn({ err: error, instance: id }, 'not removed'));
    }
  }
}
