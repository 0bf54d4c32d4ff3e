import type { Selectable } from 'kysely';
import { sql } from 'kysely';
import type { Alert, AlertState } from '../contract/alerts.ts';
import { notFound } from '../contract/errors.ts';
import { revisionId } from '../contract/references.ts';
import type { Db } from '../db/database.ts';
import { deleteInSlices } from '../db/delete-slice.ts';
import { newestFirst, type Page } from '../db/keyset-page.ts';
import type { Tables } from '../db/tables.ts';
import { idFloor } from '../lib/ids.ts';
import { isoTime, isoTimeOrNull } from '../lib/iso-time.ts';
import { perRevision } from './evaluate.ts';

export type AlertRow = Selectable<Tables['alert']>;

interface AlertFilter {
  environment?: string | undefined;
  state?: AlertState | undefined;
  rule_id?: string | undefined;
}

export async function listAlerts(
  db: Db,
  projectId: string,
  { environment, state, rule_id }: AlertFilter,
  page: Page,
): Promise<AlertRow[]> {
  let query = db.selectFrom('alert').selectAll().where('project_id', '=', projectId);
  if (environment !== undefined) query = query.where('environment', '=', environment);
  if (state !== undefined) query = query.where('resolved_at', state === 'firing' ? 'is' : 'is not', null);
  if (rule_id !== undefined) query = query.where('rule_id', '=', rule_id);
  return newestFirst(query, page).execute();
}

/** Deletes resolved alerts that fired before `ms`. Ids sort by time, so this reads only the start of the index. */
export async function deleteAlertsBefore(db: Db, ms: number): Promise<void> {
  await deleteInSlices(db, 'alert', sql`id < ${idFloor('alr', ms)} and resolved_at is not null`);
}

export async function requireAlert(db: Db, projectId: string, id: string): Promise<AlertRow> {
  const row = await db
    .selectFrom('alert')
    .selectAll()
    .where('id', '=', id)
    .where('project_id', '=', projectId)
    .executeTakeFirst();
  if (!row) throw notFound('alr', id);
  return row;
}

/** An alert that aborts a canary. */
interface CanaryAlert {
  message: string;
  /** It rests on the router's measurements of the canary, as the analysis does. */
  measured: boolean;
}

/**
 * A firing alert whose rule aborts canaries, that fired since the canary began and is about its revision or about the
 * whole environment.
 */
export async function findCanaryAlert(
  db: Db,
  { project_id, environment, revision, state_since }: Selectable<Tables['deployment']>,
): Promise<CanaryAlert | null> {
  const rows = await db
    .selectFrom('alert')
    .innerJoin('alert_rule', 'alert_rule.id', 'alert.rule_id')
    .select(['alert.name', 'alert.message', 'alert_rule.metric'])
    .where('alert.project_id', '=', project_id)
    .where('alert.environment', '=', environment)
    .where('alert.resolved_at', 'is', null)
    .where('alert.fired_at', '>=', state_since)
    .where((e) => e.or([e('alert.revision', 'is', null), e('alert.revision', '=', revision)]))
    .where('alert_rule.on_canary', '=', 'abort')
    .orderBy('alert.id')
    .limit(100)
    .execute();
  const found = rows.map(({ name, message, metric }) => ({
    message: `The alert ${name} fired: ${message}`.slice(0, 1000).toWellFormed(),
    measured: perRevision(metric),
  }));
  return found.find(({ measured }) => !measured) ?? found[0] ?? null;
}

export function presentAlert(row: AlertRow): Alert {
  return {
    id: row.id,
    rule_id: row.rule_id,
    name: row.name,
    severity: row.severity,
    message: row.message,
    environment: row.environment,
    revision: row.revision === null ? null : revisionId(row.revision),
    hostname: row.hostname,
    state: row.resolved_at === null ? 'firing' : 'resolved',
    value: row.value,
    fired_at: isoTime(row.fired_at),
    resolved_at: isoTimeOrNull(row.resolved_at),
  };
}
