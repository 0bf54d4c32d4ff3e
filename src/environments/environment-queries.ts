// Environments in the database, and as the API shows them.
import { type Selectable, sql } from 'kysely';
import {
  type CanaryPolicy,
  type Environment,
  environmentDefaults,
  type PendingChange,
} from '../contract/environments.ts';
import { ApiError, notFound } from '../contract/errors.ts';
import { revisionId } from '../contract/references.ts';
import type { Caller } from '../contract/scopes.ts';
import type { Db } from '../db/database.ts';
import { changeOne } from '../db/guarded.ts';
import type { Page } from '../db/keyset-page.ts';
import { prepared, preparedInsert } from '../db/prepared.ts';
import type { Tables } from '../db/tables.ts';
import type { Clock } from '../lib/clock.ts';
import type { IdSource } from '../lib/ids.ts';
import { isoTime } from '../lib/iso-time.ts';
import { presentHealth, requireProject } from '../projects/project-queries.ts';
import { healthCheckOf, type RevisionSettings, resourcesOf } from './revision-settings.ts';

export type EnvironmentRow = Selectable<Tables['environment']>;

export async function listEnvironments(db: Db, projectId: string, { limit, after }: Page): Promise<EnvironmentRow[]> {
  let query = db
    .selectFrom('environment')
    .selectAll()
    .where('project_id', '=', projectId)
    .where('deleted_at', 'is', null);
  if (after !== null) {
    const [createdAt, name] = after.split(' ') as [string, string];
    query = query.where((e) =>
      e.or([
        e('created_at', '<', Number(createdAt)),
        e.and([e('created_at', '=', Number(createdAt)), e('name', '<', name)]),
      ]),
    );
  }
  return query
    .orderBy('created_at', 'desc')
    .orderBy('name', 'desc')
    .limit(limit + 1)
    .execute();
}

/** The environment's position in the list, for cursors. */
export const pageKeyOf = (row: EnvironmentRow): string => `${row.created_at} ${row.name}`;

export async function findEnvironment(db: Db, projectId: string, name: string): Promise<EnvironmentRow | undefined> {
  return db
    .selectFrom('environment')
    .selectAll()
    .where('project_id', '=', projectId)
    .where('name', '=', name)
    .where('deleted_at', 'is', null)
    .executeTakeFirst();
}

export async function requireEnvironment(
  db: Db,
  caller: Caller,
  params: { id: string; name: string },
): Promise<EnvironmentRow> {
  const project = await requireProject(db, caller, params.id);
  const row = await findEnvironment(db, project.id, params.name);
  if (!row) throw notFound('name', params.name);
  return row;
}

export async function countEnvironments(db: Db, projectId: string): Promise<number> {
  const row = await db
    .selectFrom('environment')
    .select((e) => e.fn.countAll<number>().as('count'))
    .where('project_id', '=', projectId)
    .executeTakeFirstOrThrow();
  return Number(row.count);
}

const selectHost = prepared((db) => db.selectFrom('environment').select('host').where('host', '=', ''));

export async function isHostTaken(db: Db, host: string): Promise<boolean> {
  return (await selectHost(db, host)).length > 0;
}

export const insertEnvironment = preparedInsert('environment');

export async function updateEnvironment(db: Db, row: EnvironmentRow): Promise<void> {
  const { project_id, name, version, created_at, host, region, next_revision, deleted_at, ...settings } = row;
  // Those of the reconciler, which may change at any time.
  const { health_state, health_since, health_reason, ...changed } = settings;
  await changeOne(
    db
      .updateTable('environment')
      .set({ ...changed, version: version + 1 })
      .where('project_id', '=', project_id)
      .where('name', '=', name)
      .where('version', '=', version),
  );
}

export async function deleteEnvironment(db: Db, row: EnvironmentRow): Promise<void> {
  await changeOne(
    db
      .deleteFrom('environment')
      .where('project_id', '=', row.project_id)
      .where('name', '=', row.name)
      .where('version', '=', row.version),
  );
}

type HealthFields = Pick<EnvironmentRow, 'health_state' | 'health_since' | 'health_reason'>;

/** The one writer of an environment's health. That is no change of its settings, so its version stays. */
export async function setHealth(tx: Db, { project_id, name }: EnvironmentRow, health: HealthFields): Promise<void> {
  await tx
    .updateTable('environment')
    .set(health)
    .where('project_id', '=', project_id)
    .where('name', '=', name)
    .execute();
}

/** What an environment is running now. */
export interface Live {
  active: number | null;
  /** Of the active revision. */
  port: number | null;
  traffic: { revision: number; percent: number }[];
  inProgress: string | null;
  /** Those of the live revision, or of the one that is being rolled out; null: there is neither. */
  settings: RevisionSettings | null;
}

const nothing: Live = { active: null, port: null, traffic: [], inProgress: null, settings: null };

export async function findLive(db: Db, projectId: string, names: string[]): Promise<Map<string, Live>> {
  const live = new Map<string, Live>(names.map((name) => [name, { ...nothing, traffic: [] }]));
  if (names.length === 0) return live;
  const revisions = await db
    .selectFrom('revision')
    .select(['environment', 'number', 'state', 'traffic_percent'])
    .select(['port', 'variables_sealed', 'health_check', 'resources'])
    .where('project_id', '=', projectId)
    .where('environment', 'in', names)
    .where((e) => e.or([e('state', 'in', ['active', 'pending', 'canary']), sql<boolean>`traffic_percent > 0`]))
    .orderBy('number')
    .execute();
  for (const { environment, number, state, traffic_percent, ...settings } of revisions) {
    const of = live.get(environment)!;
    if (state === 'active') Object.assign(of, { active: number, port: settings.port, settings });
    if (traffic_percent > 0) of.traffic.push({ revision: number, percent: traffic_percent });
  }
  const deployments = await db
    .selectFrom('deployment')
    .select(['environment', 'id', 'state', 'revision'])
    .where('project_id', '=', projectId)
    .where('environment', 'in', names)
    .where('finished_at', 'is', null)
    .execute();
  for (const { environment, id, state, revision } of deployments) {
    const of = live.get(environment)!;
    of.inProgress = id;
    const target = revisions.find((row) => row.environment === environment && row.number === revision);
    if (target && state !== 'aborting') of.settings = target;
  }
  return live;
}

/** Rows from before a field existed have its default. */
export function canaryPolicyOf({ canary }: Pick<EnvironmentRow, 'canary'>): CanaryPolicy {
  return { ...environmentDefaults.canary, ...JSON.parse(canary) };
}

export function presentEnvironment(
  row: EnvironmentRow,
  urlOf: (host: string) => string,
  { active, port, traffic, inProgress }: Live = nothing,
  pending: PendingChange[] = [],
): Environment {
  return {
    name: row.name,
    region: row.region,
    url: urlOf(row.host),
    replicas: row.replicas,
    port: row.port_set === 1 ? row.port : (port ?? row.port),
    variables: JSON.parse(row.variable_names),
    health_check: healthCheckOf(row),
    resources: resourcesOf(row),
    canary: canaryPolicyOf(row),
    auto_rollback: row.auto_rollback === 1,
    retention: row.retention,
    drain_s: row.drain_s,
    locked: row.locked_reason === null ? null : { reason: row.locked_reason, at: isoTime(row.locked_at!) },
    health: presentHealth(row),
    active_revision: active === null ? null : revisionId(active),
    traffic: traffic.map(({ revision, percent }) => ({ revision: revisionId(revision), percent })),
    in_progress_deployment: inProgress,
    pending_changes: pending,
    created_at: isoTime(row.created_at),
    updated_at: isoTime(row.updated_at),
  };
}

/**
 * The first label of an environment's address. It gets a random suffix if it is taken: two accounts may have a project
 * with the same slug, and `a-b` + `c` gives the same label as `a` + `b-c`.
 */
export async function freeHost(
  db: Db,
  { ids, clock }: { ids: IdSource; clock: Clock },
  { accountId, slug }: { accountId: string; slug: string },
  name: string,
): Promise<string> {
  const plain = `${slug}-${name}`;
  if (!(await isHostTaken(db, plain)) && !(await isKeptForOthers(db, plain, accountId, clock.now()))) return plain;
  return `${plain.slice(0, 63 - 9)}-${ids('env').slice(-8)}`;
}

const selectKept = prepared((db) =>
  db.selectFrom('kept_host').select('host').where('host', '=', '').where('account_id', '!=', '').where('until', '>', 0),
);

/** Visitors, links and cookies of an address outlive it: what another account puts there would get them. */
async function isKeptForOthers(db: Db, host: string, accountId: string, nowMs: number): Promise<boolean> {
  return (await selectKept(db, host, accountId, nowMs)).length > 0;
}

/** To be called before the environments of the project, or the one named, are deleted. */
export async function keepHosts(
  tx: Db,
  { id: projectId, account_id }: { id: string; account_id: string },
  name: string | null,
  until: number,
): Promise<void> {
  let query = tx
    .selectFrom('environment')
    .select('host')
    .where('project_id', '=', projectId)
    .where('deleted_at', 'is', null);
  if (name !== null) query = query.where('name', '=', name);
  const kept = (await query.execute()).map(({ host }) => ({ host, account_id, until }));
  if (kept.length === 0) return;
  await tx
    .insertInto('kept_host')
    .values(kept)
    .onConflict((conflict) => conflict.column('host').doUpdateSet({ account_id, until }))
    .execute();
}

export async function deleteKeptHostsBefore(db: Db, ms: number): Promise<void> {
  await db.deleteFrom('kept_host').where('until', '<', ms).execute();
}

/** `path`: where the request names the environment. */
export const environmentUnknown = (name: string, path = 'body.environment') =>
  new ApiError('environment_unknown', `The project has no environment ${name}.`, {
    details: [{ path, message: name }],
  });
