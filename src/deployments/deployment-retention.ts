// Deletes deployments that nobody can do anything with any more, each with its timeline and its revision. What is live, in
// progress, still has instances or can be rolled back to stays however old it is, and so do the latest of each environment.
import { sql } from 'kysely';
import type { Db } from '../db/database.ts';
import { dialectOf } from '../db/database.ts';
import { type EnvironmentKey, keyOf } from '../environments/environment-key.ts';

export interface DeploymentsKept {
  /** Those created before may go. */
  olderThanMs: number;
  /** Of an environment; more than these go whatever their age. */
  most: number;
}

/** The latest of an environment, which show what it was before it became quiet. */
const alwaysKept = 20;
const environmentsAtOnce = 50;
const revisionsAtOnce = 100;

/** Sweeps some environments behind this one. Gives where to go on; null: all are done. */
export async function sweepDeployments(
  db: Db,
  kept: DeploymentsKept,
  after: EnvironmentKey | null,
): Promise<EnvironmentKey | null> {
  let query = db
    .selectFrom('environment')
    .select(['project_id', 'name as environment', 'next_revision'])
    .orderBy('project_id')
    .orderBy('name')
    .limit(environmentsAtOnce);
  if (after)
    query = query.where((e) =>
      e.or([
        e('project_id', '>', after.projectId),
        e.and([e('project_id', '=', after.projectId), e('name', '>', after.environment)]),
      ]),
    );
  const page = await query.execute();
  // Revisions are numbered per environment, so that none of them has to be counted.
  for (const row of page) while ((await sweepSlice(db, kept, keyOf(row), row.next_revision)) === revisionsAtOnce);
  return page.length < environmentsAtOnce ? null : keyOf(page.at(-1)!);
}

/** Gives how many went. */
async function sweepSlice(
  db: Db,
  { olderThanMs, most }: DeploymentsKept,
  key: EnvironmentKey,
  nextRevision: number,
): Promise<number> {
  const beyond = nextRevision - Math.max(most, alwaysKept);
  const candidates = await db
    .selectFrom('revision')
    .select(['number', 'deployment_id'])
    .where('project_id', '=', key.projectId)
    .where('environment', '=', key.environment)
    .where('state', 'in', ['retired', 'failed', 'rolled_back'])
    .where('number', '<', nextRevision - alwaysKept)
    .where((e) => e.or([e('state', '=', 'retired'), e('activated_at', 'is', null)]))
    .where((e) => e.or([e('number', '<', beyond), e('created_at', '<', olderThanMs)]))
    .where(
      sql<boolean>`not exists (select 1 from instance i where i.project_id = revision.project_id
        and i.environment = revision.environment and i.revision = revision.number)`,
    )
    .where(
      sql<boolean>`not exists (select 1 from deployment d where d.id = revision.deployment_id and d.finished_at is null)`,
    )
    .orderBy('number')
    .limit(revisionsAtOnce)
    .execute();
  if (candidates.length === 0) return 0;
  await db.transaction().execute(async (tx) => {
    await lockEnvironment(tx, key);
    const numbers = candidates.map(({ number }) => number);
    const ids = candidates.map(({ deployment_id }) => deployment_id);
    await tx
      .deleteFrom('revision')
      .where('project_id', '=', key.projectId)
      .where('environment', '=', key.environment)
      .where('number', 'in', numbers)
      .execute();
    await tx.deleteFrom('deployment').where('id', 'in', ids).execute();
  });
  return candidates.length;
}

/** New deployments change rows of earlier revisions, too: one after the other. */
async function lockEnvironment(tx: Db, { projectId, environment }: EnvironmentKey): Promise<void> {
  if (dialectOf(tx) !== 'postgres') return;
  await tx
    .selectFrom('environment')
    .select('name')
    .where('project_id', '=', projectId)
    .where('name', '=', environment)
    .forUpdate()
    .execute();
}
