// The rows of sets. A row is inserted before its set is made and deleted after it is dropped, so a set without a row is an
// orphan.
import type { Insertable, Selectable } from 'kysely';
import type { Db } from '../db/database.ts';
import { insertGuarded } from '../db/guarded.ts';
import type { Tables } from '../db/tables.ts';
import type { EnvironmentKey } from '../environments/key.ts';

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
