// Deployments, their timelines and revisions in the database.
import { type Selectable, sql } from 'kysely';
import type { DeploymentState } from '../contract/deployments.ts';
import type { Resources } from '../contract/environments.ts';
import { ApiError, notFound } from '../contract/errors.ts';
import type { Caller } from '../contract/scopes.ts';
import type { Db } from '../db/database.ts';
import { changeOne } from '../db/guarded.ts';
import { newestFirst, type Page } from '../db/keyset-page.ts';
import { type Found, searchNewestFirst } from '../db/search.ts';
import type { Tables } from '../db/tables.ts';
import { type EnvironmentKey, keyOf, keyText } from '../environments/environment-key.ts';
import { resourcesOf } from '../environments/revision-settings.ts';
import { requireProject } from '../projects/project-queries.ts';

export type DeploymentRow = Selectable<Tables['deployment']>;
export type RevisionRow = Selectable<Tables['revision']>;
export type TimelineRow = Selectable<Tables['deployment_timeline']>;

export async function insertDeployment(tx: Db, row: DeploymentRow): Promise<void> {
  await tx.insertInto('deployment').values(row).execute();
}

async function findDeployment(db: Db, projectId: string, id: string): Promise<DeploymentRow | undefined> {
  return db
    .selectFrom('deployment')
    .selectAll()
    .where('id', '=', id)
    .where('project_id', '=', projectId)
    .executeTakeFirst();
}

export async function findInProgress(db: Db, key: EnvironmentKey): Promise<DeploymentRow | undefined> {
  return db
    .selectFrom('deployment')
    .selectAll()
    .where('project_id', '=', key.projectId)
    .where('environment', '=', key.environment)
    .where('finished_at', 'is', null)
    .executeTakeFirst();
}

interface DeploymentFilter {
  environment?: string | undefined;
  state?: DeploymentState | undefined;
  search?: string | undefined;
}

export async function listDeployments(
  db: Db,
  projectId: string,
  { environment, state, search }: DeploymentFilter,
  page: Page,
): Promise<Found<DeploymentRow>> {
  let query = db.selectFrom('deployment').selectAll().where('project_id', '=', projectId);
  if (environment !== undefined) query = query.where('environment', '=', environment);
  if (state !== undefined) query = query.where('state', '=', state);
  const by = sql`(select t.name from token t where t.id = deployment.created_by)`;
  const named = [sql`deployment.image`, sql`deployment.note`, sql`deployment.environment`, sql`deployment.id`];
  return searchNewestFirst(query, search, [...named, sql`'r' || deployment.revision`, by], page);
}

/** All changes of a deployment go through here: only from the version that was read, else ChangedMeanwhile. */
export async function updateDeployment(
  tx: Db,
  row: DeploymentRow,
  changes: Partial<DeploymentRow>,
): Promise<DeploymentRow> {
  const changed = { ...changes, version: row.version + 1 };
  await changeOne(
    tx.updateTable('deployment').set(changed).where('id', '=', row.id).where('version', '=', row.version),
  );
  return { ...row, ...changed };
}

/** Until the transaction ends the deployment stays as it was read; throws ChangedMeanwhile where it is not any more. */
export async function lockDeployment(tx: Db, { id, version }: DeploymentRow): Promise<void> {
  await changeOne(tx.updateTable('deployment').set({ version }).where('id', '=', id).where('version', '=', version));
}

/** Corrects when the deployment is to go on. That is no step, so its version stays. */
export async function setDeploymentTimes(
  tx: Db,
  { id, version }: DeploymentRow,
  times: Partial<Pick<DeploymentRow, 'deadline_at' | 'step_until' | 'step_since' | 'step_baseline' | 'measured_at'>>,
): Promise<void> {
  await changeOne(tx.updateTable('deployment').set(times).where('id', '=', id).where('version', '=', version));
}

export async function insertTimeline(tx: Db, row: Omit<TimelineRow, 'seq'>): Promise<void> {
  const last = await tx
    .selectFrom('deployment_timeline')
    .select((e) => e.fn.max('seq').as('seq'))
    .where('deployment_id', '=', row.deployment_id)
    .executeTakeFirst();
  await tx
    .insertInto('deployment_timeline')
    .values({ ...row, seq: Number(last?.seq ?? 0) + 1 })
    .execute();
}

export async function listTimelines(db: Db, deploymentIds: string[]): Promise<Map<string, TimelineRow[]>> {
  const timelines = new Map<string, TimelineRow[]>(deploymentIds.map((id) => [id, []]));
  if (deploymentIds.length === 0) return timelines;
  const rows = await db
    .selectFrom('deployment_timeline')
    .selectAll()
    .where('deployment_id', 'in', deploymentIds)
    .orderBy('seq')
    .execute();
  for (const row of rows) timelines.get(row.deployment_id)!.push(row);
  return timelines;
}

/** Takes the environment's next number; other transactions that want one wait until this one ends. */
export async function takeRevisionNumber(tx: Db, key: EnvironmentKey): Promise<number> {
  const { number } = await tx
    .updateTable('environment')
    .set((e) => ({ next_revision: e('next_revision', '+', 1) }))
    .where('project_id', '=', key.projectId)
    .where('name', '=', key.environment)
    .returning((e) => e('next_revision', '-', 1).as('number'))
    .executeTakeFirstOrThrow();
  return Number(number);
}

export async function insertRevision(tx: Db, row: RevisionRow): Promise<void> {
  await tx.insertInto('revision').values(row).execute();
}

const revisionsOf = (db: Db, key: EnvironmentKey) =>
  db
    .selectFrom('revision')
    .selectAll()
    .where('project_id', '=', key.projectId)
    .where('environment', '=', key.environment);

export async function listRevisions(db: Db, key: EnvironmentKey, page: Page): Promise<RevisionRow[]> {
  return newestFirst(revisionsOf(db, key), page, 'number').execute();
}

/** The revision that was live when this deployment began. */
export async function findPreviousRevision(
  db: Db,
  key: EnvironmentKey,
  deploymentId: string,
): Promise<RevisionRow | undefined> {
  const deployment = await findDeployment(db, key.projectId, deploymentId);
  if (deployment?.previous_revision == null) return undefined;
  return findRevision(db, key, deployment.previous_revision);
}

export async function findRevision(db: Db, key: EnvironmentKey, number: number): Promise<RevisionRow | undefined> {
  return revisionsOf(db, key).where('number', '=', number).executeTakeFirst();
}

export async function findActiveRevision(db: Db, key: EnvironmentKey): Promise<RevisionRow | undefined> {
  return revisionsOf(db, key).where('state', '=', 'active').executeTakeFirst();
}

/**
 * The active revision, the one that the deployment in progress rolls out, and those that still have instances. By their
 * numbers: an environment may have had many thousand others.
 */
export async function listCurrentRevisions(db: Db, key: EnvironmentKey): Promise<RevisionRow[]> {
  return revisionsOf(db, key)
    .where('number', 'in', (e) =>
      e
        .selectFrom('revision as live')
        .select('live.number')
        .where('live.project_id', '=', key.projectId)
        .where('live.environment', '=', key.environment)
        .where('live.state', '=', 'active')
        .union(
          e
            .selectFrom('deployment')
            .select('deployment.revision as number')
            .where('deployment.project_id', '=', key.projectId)
            .where('deployment.environment', '=', key.environment)
            .where('deployment.finished_at', 'is', null),
        )
        .union(
          e
            .selectFrom('instance')
            .select('instance.revision as number')
            .where('instance.project_id', '=', key.projectId)
            .where('instance.environment', '=', key.environment),
        ),
    )
    .execute();
}

export async function findLastSuperseded(db: Db, key: EnvironmentKey): Promise<RevisionRow | undefined> {
  return revisionsOf(db, key).where('state', '=', 'superseded').orderBy('number', 'desc').executeTakeFirst();
}

export async function listSuperseded(db: Db, key: EnvironmentKey): Promise<RevisionRow[]> {
  return revisionsOf(db, key)
    .where('state', 'in', ['superseded', 'rolled_back'])
    .where('activated_at', 'is not', null)
    .orderBy('number', 'desc')
    .execute();
}

/**
 * Earlier revisions that can run no more need their variables no longer, which are the largest part of a revision. What the
 * last one has is left, for its instances may still be there.
 */
export async function dropUnneededVariables(tx: Db, key: EnvironmentKey, number: number): Promise<void> {
  await tx
    .updateTable('revision')
    .set({ variables_sealed: null })
    .where('project_id', '=', key.projectId)
    .where('environment', '=', key.environment)
    .where('number', '<', number - 1)
    .where('variables_sealed', 'is not', null)
    .where((e) =>
      e.or([
        e('state', 'in', ['retired', 'failed']),
        e.and([e('state', '=', 'rolled_back'), e('activated_at', 'is', null)]),
      ]),
    )
    .execute();
}

/** What instances of these revisions may use, by revision. */
export async function listResources(db: Db, key: EnvironmentKey, numbers: number[]): Promise<Map<number, Resources>> {
  const rows = await db
    .selectFrom('revision')
    .select(['number', 'resources'])
    .where('project_id', '=', key.projectId)
    .where('environment', '=', key.environment)
    .where('number', 'in', [...numbers, 0])
    .execute();
  return new Map(rows.map((row) => [row.number, resourcesOf(row)]));
}

/** Everything but its share of the requests, which has one writer: traffic-shares.ts. */
export async function updateRevision(
  tx: Db,
  key: EnvironmentKey,
  number: number,
  changes: Partial<Omit<RevisionRow, 'traffic_percent'>>,
): Promise<void> {
  await tx
    .updateTable('revision')
    .set(changes)
    .where('project_id', '=', key.projectId)
    .where('environment', '=', key.environment)
    .where('number', '=', number)
    .execute();
}

/** Environments to reconcile: with a deployment in progress, an active revision, or instances. */
export async function listEnvironmentsToKeep(db: Db): Promise<EnvironmentKey[]> {
  const rows = await db
    .selectFrom('revision')
    .select(['project_id', 'environment'])
    .where(sql<boolean>`state in ('pending', 'canary', 'active')`) // as in the index revision_current
    .union((e) => e.selectFrom('instance').select(['project_id', 'environment']))
    .union((e) => e.selectFrom('instance_set').select(['project_id', 'environment']))
    // Of these, what is left is cleared away in slices; their instances are orphans.
    .except((e) =>
      e.selectFrom('environment').select(['project_id', 'name as environment']).where('deleted_at', 'is not', null),
    )
    .execute();
  return rows.map(keyOf);
}

/** Environments with a deployment that has not ended. */
export async function listEnvironmentsInProgress(db: Db): Promise<EnvironmentKey[]> {
  const rows = await db
    .selectFrom('deployment')
    .select(['project_id', 'environment'])
    .where('finished_at', 'is', null)
    .execute();
  return rows.map(keyOf);
}

/** Any deployment of the project that has not ended. */
export async function findInProgressOf(db: Db, projectId: string): Promise<{ id: string } | undefined> {
  return db
    .selectFrom('deployment')
    .select('id')
    .where('project_id', '=', projectId)
    .where('finished_at', 'is', null)
    .executeTakeFirst();
}

export const deploymentInProgress = ({ id }: { id: string }): ApiError =>
  new ApiError('deployment_in_progress', `The deployment ${id} has not ended.`, {
    details: [{ path: 'deployment', message: id }],
  });

export async function requireDeployment(
  db: Db,
  caller: Caller,
  params: { id: string; dpl: string },
): Promise<DeploymentRow> {
  const project = await requireProject(db, caller, params.id);
  const row = await findDeployment(db, project.id, params.dpl);
  if (!row) throw notFound('dpl', params.dpl);
  return row;
}

const keyOfRow = (row: { project_id: string; name: string }): EnvironmentKey => ({
  projectId: row.project_id,
  environment: row.name,
});

/** The regions of these environments, by the text of their key; without those that do not exist any more. */
export async function findRegions(db: Db, keys: EnvironmentKey[]): Promise<Map<string, string>> {
  if (keys.length === 0) return new Map();
  const projects = [...new Set(keys.map(({ projectId }) => projectId))];
  const rows = await db
    .selectFrom('environment')
    .select(['project_id', 'name', 'region'])
    .where('project_id', 'in', projects)
    .execute();
  return new Map(rows.map((row) => [keyText(keyOfRow(row)), row.region]));
}

export async function listEnvironmentsIn(db: Db, region: string): Promise<EnvironmentKey[]> {
  const rows = await db.selectFrom('environment').select(['project_id', 'name']).where('region', '=', region).execute();
  return rows.map(keyOfRow);
}
