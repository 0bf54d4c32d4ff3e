// How a project or an environment goes. What is small goes in the transaction of the request. What is large is marked: from
// then on it is gone for everyone, and `sweepDeleted` clears away what belongs to it in slices, instances and domains first.
import { type RawBuilder, sql } from 'kysely';
import { insertAlertEvents, markResolved } from '../alerts/incidents.ts';
import type { Db } from '../db/database.ts';
import { deleteSlice, sliceRows } from '../db/delete-slice.ts';
import { changeOne } from '../db/guarded.ts';
import type { Tables } from '../db/tables.ts';
import type { EnvironmentRow } from '../environments/environment-queries.ts';
import type { Clock } from '../lib/clock.ts';
import type { IdSource } from '../lib/ids.ts';
import type { ProjectRow } from '../projects/project-queries.ts';
import { publish } from '../signals/signals.ts';

interface RemovalParts {
  ids: IdSource;
  clock: Clock;
}

/** All that belongs to an environment and can be much, in the order in which it is cleared away. */
const belongings = [
  'instance',
  'instance_set',
  'domain',
  'alert',
  'alert_rule',
  'log_segment',
  'log_stream',
  'instance_end',
  'revision',
  'variable_set',
  'deployment',
] as const satisfies (keyof Tables)[];

/** What a request deletes itself. Each alert that still fires costs an event besides. */
const maxRows = 500;
const maxFiring = 50;

export const ofProject = (projectId: string): RawBuilder<unknown> => sql`project_id = ${projectId}`;
export const ofEnvironment = ({ project_id, name }: Pick<EnvironmentRow, 'project_id' | 'name'>): RawBuilder<unknown> =>
  sql`project_id = ${project_id} and environment = ${name}`;

export async function isSmall(tx: Db, owner: RawBuilder<unknown>): Promise<boolean> {
  const firing = sql`${owner} and resolved_at is null`;
  if ((await countUpTo(tx, 'alert', firing, maxFiring + 1)) > maxFiring) return false;
  let left = maxRows;
  for (const table of belongings) {
    left -= await countUpTo(tx, table, owner, left + 1);
    if (left < 0) return false;
  }
  return true;
}

async function countUpTo(tx: Db, table: keyof Tables, owner: RawBuilder<unknown>, limit: number): Promise<number> {
  const { rows } = await sql<{ count: number }>`
    select count(*) as count from (select 1 from ${sql.table(table)} where ${owner} limit ${limit}) counted`.execute(
    tx,
  );
  return Number(rows[0]!.count);
}

/** Routers stop presenting the certificates of its domains. A project has at most 1,000 domains. */
export async function publishDomainsOf(tx: Db, owner: RawBuilder<unknown>): Promise<void> {
  const { rows } = await sql<{ hostname: string }>`select hostname from domain where ${owner}`.execute(tx);
  for (const { hostname } of rows) publish(tx, 'domains', { hostname });
}

/** Its slug is free at once, and so are the addresses and domains of its environments. */
export async function markProjectDeleted(tx: Db, { id, version }: ProjectRow, nowMs: number): Promise<void> {
  await changeOne(
    tx
      .updateTable('project')
      .set({ deleted_at: nowMs, slug: id, version: version + 1 })
      .where('id', '=', id)
      .where('version', '=', version),
  );
  await markDeleted(tx, sql`project_id = ${id}`, nowMs);
}

export async function markEnvironmentDeleted(tx: Db, row: EnvironmentRow, nowMs: number): Promise<void> {
  await markDeleted(tx, sql`project_id = ${row.project_id} and name = ${row.name}`, nowMs);
}

async function markDeleted(tx: Db, which: RawBuilder<unknown>, nowMs: number): Promise<void> {
  const { rows } = await sql<EnvironmentName>`
    update environment set deleted_at = ${nowMs}, host = project_id || ' ' || name, version = version + 1
    where ${which} returning project_id, name`.execute(tx);
  // Others may have the names at once; no certificate is asked for any more.
  for (const environment of rows)
    await sql`update domain set hostname = id, next_attempt_at = null where ${ofEnvironment(environment)}`.execute(tx);
}

/**
 * Clears away one slice of each environment that is marked. Gives whether there may be more: then it is to be called
 * again.
 */
export async function sweepDeleted(db: Db, parts: RemovalParts): Promise<boolean> {
  const environments = await db
    .selectFrom('environment')
    .select(['project_id', 'name'])
    .where('deleted_at', 'is not', null)
    .orderBy('deleted_at')
    .limit(100)
    .execute();
  for (const environment of environments) await sweepEnvironment(db, parts, environment);
  const gone = await db
    .deleteFrom('project')
    .where('deleted_at', 'is not', null)
    // Its last events are still to become deliveries.
    .where('backlog', '=', 0)
    .where(({ not, exists, selectFrom }) =>
      not(
        exists(
          selectFrom('environment').select('environment.name').whereRef('environment.project_id', '=', 'project.id'),
        ),
      ),
    )
    .executeTakeFirst();
  return environments.length > 0 || gone.numDeletedRows > 0n;
}

type EnvironmentName = Pick<EnvironmentRow, 'project_id' | 'name'>;

async function sweepEnvironment(db: Db, parts: RemovalParts, environment: EnvironmentName): Promise<void> {
  const owner = ofEnvironment(environment);
  for (const table of belongings) {
    if (table === 'alert' && (await endSomeAlerts(db, parts, environment))) return;
    // A deployment has its timeline, a domain its certificates, a rule what the watcher remembers.
    const limit = table === 'deployment' || table === 'domain' ? sliceRows / 10 : sliceRows;
    const deleted = await deleteSlice(db, table, owner, limit);
    if (table === 'instance' && deleted > 0) publish(db, 'removals', null);
    if (deleted === limit) return;
  }
  const { project_id, name } = environment;
  await db
    .deleteFrom('environment')
    .where('project_id', '=', project_id)
    .where('name', '=', name)
    .where('deleted_at', 'is not', null)
    .execute();
}

/** Alerts that fire are resolved, with their events, before they go. Gives whether there were any. */
async function endSomeAlerts(db: Db, parts: RemovalParts, { project_id, name }: EnvironmentName): Promise<boolean> {
  return db.transaction().execute(async (tx) => {
    const resolved = await markResolved(tx, parts, { projectId: project_id, environment: name });
    await insertAlertEvents(tx, parts, resolved);
    return resolved.length > 0;
  });
}
