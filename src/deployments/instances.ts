// The rows of instances. A row is inserted before its instance is started and deleted after it is stopped, so an instance
// without a row is an orphan. One that ended by itself has a row of its end instead: instance-ends.ts.
import type { Insertable, Selectable } from 'kysely';
import { type Db, dialectOf } from '../db/database.ts';
import { ChangedMeanwhile, changesOne, insertGuarded } from '../db/guarded.ts';
import type { InstanceState, Tables } from '../db/tables.ts';
import type { EnvironmentKey } from '../environments/key.ts';

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
): Promise<boolean> {
  return changesOne(
    db.updateTable('instance').set({ state: to, state_since: nowMs }).where('id', '=', id).where('state', 'in', from),
  );
}

/**
 * Until the transaction ends, those of the rows that were healthy when they were read are; throws ChangedMeanwhile where one
 * is not any more. For what rests on their number: a look is not the only one to find out that an instance is gone. To be
 * called before the routing version changes, as everybody locks instances first.
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

type Found = Pick<InstanceRow, 'host' | 'port' | 'node' | 'started_at'>;

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
  const unhealthy = db.updateTable('instance').set({ state: 'unhealthy', state_since: nowMs }).where('id', '=', id);
  return changesOne(unhealthy.where('state', '=', 'healthy').where('host', '=', host).where('port', '=', port));
}

/** Those of a region that visitors are sent to. */
export async function listRouted(db: Db, region: string): Promise<RoutedRow[]> {
  return db
    .selectFrom('instance')
    .select(['id', 'project_id', 'environment', 'host', 'port'])
    .where('region', '=', region)
    .where('state', '=', 'healthy')
    .orderBy('id')
    .execute();
}

export async function listInstanceIds(db: Db, region: string): Promise<Set<string>> {
  const rows = await db.selectFrom('instance').select('id').where('region', '=', region).execute();
  return new Set(rows.map((row) => row.id));
}
