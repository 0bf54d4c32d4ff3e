// Instances that ended although they should have run. A row of an end takes the place of the instance's own row, so that
// what starts, routes and stops instances never meets it.
import type { Selectable } from 'kysely';
import type { EndReason } from '../contract/running/instances.ts';
import type { Db } from '../db/database.ts';
import type { Tables } from '../db/tables.ts';
import type { EnvironmentKey } from '../environments/key.ts';

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
  const end = {
    ...{ id, project_id, environment, revision, node, restarts, started_at, checked_at, check_ok, check_message },
    ...{ ended_at: at, exit_code: exitCode, reason, message, replaced: 0 },
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
