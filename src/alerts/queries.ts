import type { Selectable } from 'kysely';
import type { AlertRule } from '../contract/alert-rules.ts';
import type { Alert, AlertState } from '../contract/alerts.ts';
import { notFound } from '../contract/errors.ts';
import { revisionId } from '../contract/revision-id.ts';
import type { Db } from '../db/database.ts';
import { changeOne } from '../db/guarded.ts';
import { newestFirst, type Page } from '../db/page.ts';
import type { Tables } from '../db/tables.ts';
import { idFloor } from '../lib/ids.ts';
import { isoTime, isoTimeOrNull } from '../lib/iso-time.ts';
import { perRevision } from './evaluate.ts';

export type AlertRuleRow = Selectable<Tables['alert_rule']>;
export type AlertRow = Selectable<Tables['alert']>;

export async function listAlertRules(
  db: Db,
  projectId: string,
  { environment }: { environment?: string | undefined },
  page: Page,
): Promise<AlertRuleRow[]> {
  let query = db.selectFrom('alert_rule').selectAll().where('project_id', '=', projectId);
  if (environment !== undefined) query = query.where('environment', '=', environment);
  return newestFirst(query, page).execute();
}

export async function requireAlertRule(db: Db, projectId: string, id: string): Promise<AlertRuleRow> {
  const row = await db
    .selectFrom('alert_rule')
    .selectAll()
    .where('id', '=', id)
    .where('project_id', '=', projectId)
    .executeTakeFirst();
  if (!row) throw notFound('rul', id);
  return row;
}

export async function listRulesNamed(
  db: Db,
  projectId: string,
  environment: string,
  names: string[],
): Promise<AlertRuleRow[]> {
  return db
    .selectFrom('alert_rule')
    .selectAll()
    .where('project_id', '=', projectId)
    .where('environment', '=', environment)
    .where('name', 'in', names)
    .execute();
}

/** Those of one hostname, of which every domain brings one, are counted apart from the rest. */
export async function countAlertRules(
  db: Db,
  projectId: string,
  environment: string,
  ofHostnames: boolean,
): Promise<number> {
  const row = await db
    .selectFrom('alert_rule')
    .select((e) => e.fn.countAll<number>().as('count'))
    .where('project_id', '=', projectId)
    .where('environment', '=', environment)
    .where('hostname', ofHostnames ? 'is not' : 'is', null)
    .executeTakeFirstOrThrow();
  return Number(row.count);
}

export async function insertAlertRule(tx: Db, row: AlertRuleRow): Promise<void> {
  await tx.insertInto('alert_rule').values(row).execute();
}

/** The one door by which a rule changes: only from the version that was read. */
export async function updateAlertRule(
  tx: Db,
  row: AlertRuleRow,
  changes: Partial<Omit<AlertRuleRow, 'id' | 'version'>>,
): Promise<AlertRuleRow> {
  const changed = { ...changes, version: row.version + 1 };
  await changeOne(
    tx.updateTable('alert_rule').set(changed).where('id', '=', row.id).where('version', '=', row.version),
  );
  return { ...row, ...changed };
}

export async function deleteAlertRule(tx: Db, row: AlertRuleRow): Promise<void> {
  await changeOne(tx.deleteFrom('alert_rule').where('id', '=', row.id).where('version', '=', row.version));
}

export interface AlertFilter {
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

/** Resolved ones that began before then. Ids sort by time: what is old is at the beginning of the table. */
export async function deleteAlertsBefore(db: Db, ms: number): Promise<void> {
  await db.deleteFrom('alert').where('id', '<', idFloor('alr', ms)).where('resolved_at', 'is not', null).execute();
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

/** An alert that is to end a canary. */
export interface CanaryAlert {
  message: string;
  /** It comes from what the router measured of the canary, as the analysis does. */
  measured: boolean;
}

/** What fired since the canary began, still does, is about its revision or about the whole environment, and ends it. */
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

export function presentAlertRule(row: AlertRuleRow): AlertRule {
  return {
    id: row.id,
    environment: row.environment,
    hostname: row.hostname,
    name: row.name,
    metric: row.metric,
    comparator: row.comparator,
    threshold: row.threshold,
    window_s: row.window_s,
    for_s: row.for_s,
    severity: row.severity,
    on_canary: row.on_canary,
    enabled: row.enabled === 1,
    created_at: isoTime(row.created_at),
    updated_at: isoTime(row.updated_at),
  };
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
