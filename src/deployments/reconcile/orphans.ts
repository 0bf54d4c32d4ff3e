import type { Db } from '../../db/database.ts';
import type { RegionState } from '../../regions/regions.ts';
import { readRoutingState } from '../../traffic/traffic-queries.ts';
import { listInstanceIds, listSetIds } from '../instance-queries.ts';
import { lastLines } from './engine-calls.ts';
import type { ReconcileContext } from './reconcile-context.ts';

type OrphanContext = Pick<ReconcileContext, 'db' | 'log' | 'takeLogs' | 'routers'>;

/**
 * Instances that have no row: those of deleted environments, of a host that was given up and is back, and what a crash
 * or a restarted engine left behind. As all others, they are stopped only when no router sends them requests any more.
 */
export class Orphans {
  /** By region and instance: a version of the routing table that is without it. */
  readonly #goneFrom = new Map<string, Map<string, number>>();

  /** Gives how many are left, because a router may still send them requests. */
  async remove(context: OrphanContext, region: RegionState): Promise<number> {
    if (!region.available) return 0;
    const { db, log, routers } = context;
    const found = await region.engine.list().catch(() => []);
    const known = await listInstanceIds(db, region.name);
    const orphans = found.filter(({ id, hostAway }) => !known.has(id) && !hostAway);
    const goneFrom = await this.#note(db, region.name, orphans);
    const inForce = await routers.leastInForce();
    const unrouted = orphans.filter(({ id }) => inForce >= goneFrom.get(id)!);
    for (const { id, project, environment, revision } of unrouted) {
      log.info({ instance: id, region: region.name }, 'removing an orphan');
      const takeLines = lastLines(context.takeLogs, { id, project_id: project, environment, revision }, region.engine);
      await region.engine
        .stop(id, 0, takeLines)
        .catch((error) => log.warn({ err: error, instance: id }, 'orphan not removed'));
    }
    if (unrouted.length === orphans.length) await this.#dropSets(context, region);
    return orphans.length - unrouted.length;
  }

  /** Once no router sends requests to anything in them. */
  async #dropSets({ db, log }: OrphanContext, { name, engine }: RegionState): Promise<void> {
    const found = (await engine.sets?.().catch(() => [])) ?? [];
    if (found.length === 0) return;
    // After the engine was asked: a row is there before its set is.
    const known = await listSetIds(db, name);
    // Of a version that had a set for each instance.
    const instances = await listInstanceIds(db, name);
    for (const id of found.filter((set) => !known.has(set) && !instances.has(set))) {
      log.info({ set: id, region: name }, 'removing an orphaned set');
      await engine.drop(id).catch((error) => log.warn({ err: error, set: id }, 'orphaned set not removed'));
    }
  }

  async #note(db: Db, region: string, orphans: readonly { id: string }[]): Promise<Map<string, number>> {
    const before = this.#goneFrom.get(region);
    const { version } = await readRoutingState(db);
    // Lower than before: the database was restored to what it was at an earlier time.
    const now = new Map(orphans.map(({ id }) => [id, Math.min(before?.get(id) ?? version, version)]));
    this.#goneFrom.set(region, now);
    return now;
  }
}
