// Instances, sets of instances and ends of instances in the database.
//
// A row is inserted before its set is created or its instance is started, and deleted after that is gone. So whatever
// an engine has without a row is an orphan. An instance that ended although it should have run leaves a row of its end
// in place of its own, so that what starts, routes and stops instances never sees it.
import type { ExpressionBuilder, Insertable, Selectable } from 'kysely';
import type { EndReason } from '../contract/instances.ts';
import { type Db, dialectOf } from '../db/database.ts';
import { ChangedMeanwhile, changesOne, insertGuarded } from '../db/guarded.ts';
import type { InstanceState, Tables } from '../db/tables.ts';
import type { EnvironmentKey } from '../environments/environment-key.ts';
import { publish } from '../signals/signals.ts';

export type InstanceRow = Selectable<Tables['instance']>;

export async function listInstances(db: Db, key: EnvironmentKey): Promise<InstanceRow[]> {
  return db
    .selectFrom('instance')
    .selectAll()
    .where('project_id', '=', key.projectId)
    .where('environment', '=', key.environment)
    .orderBy('id')
    .execute();
}

export async function listInstancesIn(db: Db, region: string): Promise<InstanceRow[]> {
  return db.selectFrom('instance').selectAll().where('region', '=', region).execute();
}

/** Throws ChangedMeanwhile where the environment was deleted since it was read. */
export async function insertInstance(db: Db, row: Insertable<Tables['instance']>): Promise<void> {
  await insertGuarded(db.insertInto('instance').values(row));
}

export async function deleteInstance(db: Db, id: string): Promise<void> {
  await db.deleteFrom('instance').where('id', '=', id).execute();
}

/** Gives whether the row was still in one of the states it may come from. */
export async function markInstance(
  db: Db,
  id: string,
  from: InstanceState[],
  to: InstanceState,
  nowMs: number,
  isFallback = false,
): Promise<boolean> {
  const marked = { state: to, state_since: nowMs, is_fallback: isFallback ? 1 : 0 };
  return changesOne(db.updateTable('instance').set(marked).where('id', '=', id).where('state', 'in', from));
}

/**
 * Until the transaction ends, those of the rows that were healthy when they were read are; throws ChangedMeanwhile
 * where one is not any more. For decisions that rest on their number: a pass is not the only one to find that an
 * instance is gone. To be called before the routing version changes, as everybody locks instances first.
 */
export async function lockHealthy(tx: Db, rows: readonly Pick<InstanceRow, 'id' | 'state'>[]): Promise<void> {
  const ids = rows.filter(({ state }) => state === 'healthy').map(({ id }) => id);
  if (ids.length === 0) return;
  const still = tx
    .selectFrom('instance')
    .select('id')
    .where('id', 'in', ids)
    .where('state', '=', 'healthy')
    .orderBy('id');
  const locked = await (dialectOf(tx) === 'postgres' ? still.forUpdate() : still).execute();
  if (locked.length < ids.length) throw new ChangedMeanwhile();
}

export async function setInstanceStateSince(db: Db, ids: string[], nowMs: number): Promise<void> {
  await db.updateTable('instance').set({ state_since: nowMs }).where('id', 'in', ids).execute();
}

type Found = Pick<InstanceRow, 'host' | 'port' | 'node' | 'started_at' | 'is_fallback'>;

/** Where its engine runs it, and since when. */
export async function setInstanceFound(db: Db, id: string, found: Partial<Found>): Promise<void> {
  await db.updateTable('instance').set(found).where('id', '=', id).execute();
}

export type CheckFields = Pick<InstanceRow, 'checked_at' | 'check_ok' | 'check_message'>;

export async function setInstanceCheck(db: Db, id: string, check: CheckFields): Promise<void> {
  await db.updateTable('instance').set(check).where('id', '=', id).execute();
}

export type RoutedRow = Pick<InstanceRow, 'id' | 'project_id' | 'environment' | 'host' | 'port'>;

/** False: it is not routed any more, or somewhere else by now. */
export async function unrouteInstance(db: Db, { id, host, port }: RoutedRow, nowMs: number): Promise<boolean> {
  const gone = { state: 'unhealthy' as const, state_since: nowMs, is_fallback: 0 };
  const unrouted = db.updateTable('instance').set(gone).where('id', '=', id).where(mayBeRouted);
  return changesOne(unrouted.where('host', '=', host).where('port', '=', port));
}

const mayBeRouted = (e: ExpressionBuilder<Tables, 'instance'>) =>
  e.or([e('state', '=', 'healthy'), e('is_fallback', '=', 1)]);

/** Those of a region that visitors are sent to, or would be. */
export async function listRouted(db: Db, region: string): Promise<RoutedRow[]> {
  return db
    .selectFrom('instance')
    .select(['id', 'project_id', 'environment', 'host', 'port'])
    .where('region', '=', region)
    .where(mayBeRouted)
    .orderBy('id')
    .execute();
}

export async function listInstanceIds(db: Db, region: string): Promise<Set<string>> {
  const rows = await db.selectFrom('instance').select('id').where('region', '=', region).execute();
  return new Set(rows.map((row) => row.id));
}

export type InstanceEndRow = Selectable<Tables['instance_end']>;

export interface HowItEnded {
  at: number;
  reason: EndReason;
  exitCode: number | null;
  /** Why, for people. */
  message: string;
}

/** How many of an environment are kept. */
const kept = 50;
/** How long they are shown. */
const shownForMs = 24 * 3600_000;
/** An instance that ran this long starts the count of restarts anew. */
export const settledAfterMs = 5 * 60_000;

const endsOf = (db: Db, { projectId, environment }: EnvironmentKey) =>
  db
    .selectFrom('instance_end')
    .where('project_id', '=', projectId)
    .where('environment', '=', environment)
    .orderBy('ended_at', 'desc')
    .orderBy('id', 'desc');

/** Turns the row of the instance into one of its end; does nothing where it has none. */
export async function endInstance(
  tx: Db,
  id: string,
  { at, reason, exitCode, message }: HowItEnded,
): Promise<InstanceEndRow | null> {
  const [row] = await tx.deleteFrom('instance').where('id', '=', id).returningAll().execute();
  if (!row) return null;
  const { project_id, environment, revision, node, restarts, started_at, checked_at, check_ok, check_message } = row;
  // By the clock of its engine, or from before a pass had seen it run.
  const ended_at = Math.max(at, started_at ?? at);
  const end = {
    ...{ id, project_id, environment, revision, node, restarts, started_at, checked_at, check_ok, check_message },
    ...{ ended_at, exit_code: exitCode, reason, message, replaced: 0 },
  };
  await tx.insertInto('instance_end').values(end).execute();
  const key = { projectId: project_id, environment };
  const [oldest] = await endsOf(tx, key).select('ended_at').offset(kept).limit(1).execute();
  if (oldest) {
    await tx
      .deleteFrom('instance_end')
      .where('project_id', '=', project_id)
      .where('environment', '=', environment)
      .where('ended_at', '<=', oldest.ended_at)
      .execute();
  }
  return end;
}

export async function listInstanceEnds(db: Db, key: EnvironmentKey, nowMs: number): Promise<InstanceEndRow[]> {
  return endsOf(db, key)
    .selectAll()
    .where('ended_at', '>', nowMs - shownForMs)
    .execute();
}

export async function findLastEnd(db: Db, key: EnvironmentKey, revision: number): Promise<InstanceEndRow | undefined> {
  return endsOf(db, key).selectAll().where('revision', '=', revision).limit(1).executeTakeFirst();
}

/**
 * The restarts of so many new instances of the revision. Each takes the place of one that ended a short while ago, as
 * long as there are any: it counts one restart more than that one did.
 */
export async function takeRestarts(
  tx: Db,
  key: EnvironmentKey,
  revision: number,
  count: number,
  nowMs: number,
): Promise<number[]> {
  const ends = await endsOf(tx, key)
    .select(['id', 'restarts', 'started_at', 'ended_at'])
    .where('revision', '=', revision)
    .where('replaced', '=', 0)
    .where('ended_at', '>', nowMs - settledAfterMs)
    .limit(count)
    .execute();
  if (ends.length > 0) {
    const ids = ends.map(({ id }) => id);
    await tx.updateTable('instance_end').set({ replaced: 1 }).where('id', 'in', ids).execute();
  }
  return Array.from({ length: count }, (_, index) => {
    const end = ends[index];
    if (!end) return 0;
    const ranMs = end.ended_at - (end.started_at ?? end.ended_at);
    return ranMs >= settledAfterMs ? 1 : end.restarts + 1;
  });
}

export type InstanceSetRow = Selectable<Tables['instance_set']>;

export async function listSets(db: Db, key: EnvironmentKey): Promise<InstanceSetRow[]> {
  return db
    .selectFrom('instance_set')
    .selectAll()
    .where('project_id', '=', key.projectId)
    .where('environment', '=', key.environment)
    .execute();
}

/** Throws ChangedMeanwhile where the environment was deleted since it was read. */
export async function insertSet(db: Db, row: Insertable<Tables['instance_set']>): Promise<void> {
  await insertGuarded(db.insertInto('instance_set').values(row));
}

export async function deleteSet(db: Db, id: string): Promise<void> {
  await db.deleteFrom('instance_set').where('id', '=', id).execute();
}

export async function listSetIds(db: Db, region: string): Promise<Set<string>> {
  const rows = await db.selectFrom('instance_set').select('id').where('region', '=', region).execute();
  return new Set(rows.map(({ id }) => id));
}

/** Tells those who follow the environment that its instances have changed. */
export async function publishInstanceChange(tx: Db, key: EnvironmentKey): Promise<void> {
  const project = await tx
    .selectFrom('project')
    .select('account_id')
    .where('id', '=', key.projectId)
    .executeTakeFirst();
  if (project) publish(tx, 'changes', { accountId: project.account_id, ...key });
}
