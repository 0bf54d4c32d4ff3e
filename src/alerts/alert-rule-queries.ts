import type { Selectable } from 'kysely';
import type { AlertRule } from '../contract/alert-rules.ts';
import { notFound } from '../contract/errors.ts';
import type { Db } from '../db/database.ts';
import { changeOne } from '../db/guarded.ts';
import { newestFirst, type Page } from '../db/keyset-page.ts';
import type { Tables } from '../db/tables.ts';
import { isoTime } from '../lib/iso-time.ts';

export type AlertRuleRow = Selectable<Tables['alert_rule']>;

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

/** Rules of single hostnames are counted separately: every domain comes with one. */
export async function countAlertRules(
  db: Db,
  projectId: string,
  environment: string,
  ofHostname: boolean,
): Promise<number> {
  const row = await db
    .selectFrom('alert_rule')
    .select((e) => e.fn.countAll<number>().as('count'))
    .where('project_id', '=', projectId)
    .where('environment', '=', environment)
    .where('hostname', ofHostname ? 'is not' : 'is', null)
    .executeTakeFirstOrThrow();
  return Number(row.count);
}

export async function insertAlertRule(tx: Db, row: AlertRuleRow): Promise<void> {
  await tx.insertInto('alert_rule').values(row).execute();
}

/** Throws ChangedMeanwhile if the rule is no longer at the version that was read. */
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
