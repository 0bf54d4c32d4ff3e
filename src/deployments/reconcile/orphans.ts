import type { RegionState } from '../../regions/regions.ts';
import { listInstanceIds } from '../instances.ts';
import type { ReconcileContext } from './context.ts';
import { lastLines } from './log-tail.ts';

type OrphanContext = Pick<ReconcileContext, 'db' | 'log' | 'takeLogs'>;

/** Stops instances that have no row: those of deleted environments, and what a crash or a restarted engine left behind. */
export async function removeOrphans(context: OrphanContext, region: RegionState): Promise<void> {
  const { db, log } = context;
  if (!region.available) return;
  const found = await region.engine.list().catch(() => []);
  const known = await listInstanceIds(db, region.name);
  const orphans = found.filter(({ id, hostAway }) => !known.has(id) && !hostAway);
  for (const { id, project, environment, revision } of orphans) {
    log.info({ instance: id, region: region.name }, 'removing an orphan');
    const takeLines = lastLines(context, { id, project_id: project, environment, revision }, region.engine);
    await region.engine
      .stop(id, 0, takeLines)
      .catch((error) => log.warn({ err: error, instance: id }, 'orphan not removed'));
  }
}
