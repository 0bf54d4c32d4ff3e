import type { Selectable } from 'kysely';
import type { Environment } from '../contract/environments.ts';
import type { Db } from '../db/database.ts';
import type { Tables } from '../db/tables.ts';
import { ChangedMeanwhile, isoTime, type Page } from '../http/route.ts';

export type EnvironmentRow = Selectable<Tables['environment']>;

export async function listEnvironments(db: Db, projectId: string, { limit, after }: Page): Promise<EnvironmentRow[]> {
  let query = db.selectFrom('environment').selectAll().where('project_id', '=', projectId);
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

export const environmentKey = (row: EnvironmentRow): string => `${row.created_at} ${row.name}`;

export async function findEnvironment(db: Db, projectId: string, name: string): Promise<EnvironmentRow | undefined> {
  return db
    .selectFrom('environment')
    .selectAll()
    .where('project_id', '=', projectId)
    .where('name', '=', name)
    .executeTakeFirst();
}

export async function countEnvironments(db: Db, projectId: string): Promise<number> {
  const row = await db
    .selectFrom('environment')
    .select((e) => e.fn.countAll<number>().as('count'))
    .where('project_id', '=', projectId)
    .executeTakeFirstOrThrow();
  return Number(row.count);
}

export async function isHostTaken(db: Db, host: string): Promise<boolean> {
  const row = await db.selectFrom('environment').select('host').where('host', '=', host).executeTakeFirst();
  return row !== undefined;
}

export async function insertEnvironment(db: Db, row: EnvironmentRow): Promise<void> {
  await db.insertInto('environment').values(row).execute();
}

export async function updateEnvironment(db: Db, row: EnvironmentRow): Promise<void> {
  const { project_id, name, version, created_at, host, region, ...changed } = row;
  const { numUpdatedRows } = await db
    .updateTable('environment')
    .set({ ...changed, version: version + 1 })
    .where('project_id', '=', project_id)
    .where('name', '=', name)
    .where('version', '=', version)
    .executeTakeFirst();
  if (numUpdatedRows !== 1n) throw new ChangedMeanwhile();
}

export async function deleteEnvironment(db: Db, row: EnvironmentRow): Promise<void> {
  const { numDeletedRows } = await db
    .deleteFrom('environment')
    .where('project_id', '=', row.project_id)
    .where('name', '=', row.name)
    .where('version', '=', row.version)
    .executeTakeFirst();
  if (numDeletedRows !== 1n) throw new ChangedMeanwhile();
}

export function presentEnvironment(row: EnvironmentRow, urlOf: (host: string) => string): Environment {
  return {
    name: row.name,
    region: row.region,
    url: urlOf(row.host),
    replicas: row.replicas,
    port: row.port,
    variables: JSON.parse(row.variable_names),
    health_check: JSON.parse(row.health_check),
    canary: JSON.parse(row.canary),
    auto_rollback: row.auto_rollback === 1,
    retention: row.retention,
    drain_s: row.drain_s,
    locked: row.locked_reason === null ? null : { reason: row.locked_reason, at: isoTime(row.locked_at!) },
    active_revision: null,
    traffic: [],
    in_progress_deployment: null,
    created_at: isoTime(row.created_at),
    updated_at: isoTime(row.updated_at),
  };
}
