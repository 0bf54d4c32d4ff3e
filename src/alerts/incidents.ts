// The two ways an alert changes: it fires and it is resolved, each once and together with its event. A second process
// that comes to the same conclusion finds the row already there, or already resolved, and writes no event. Rows are
// locked in one order, rule, alert, project, so that transactions cannot deadlock.
import type { Db } from '../db/database.ts';
import { changesOne } from '../db/guarded.ts';
import { insertEvent } from '../events/outbox.ts';
import type { Clock } from '../lib/clock.ts';
import type { IdSource } from '../lib/ids.ts';
import { publish } from '../signals/signals.ts';
import { type AlertRow, presentAlert } from './alert-queries.ts';
import type { AlertRuleRow } from './alert-rule-queries.ts';

export interface IncidentParts {
  ids: IdSource;
  clock: Clock;
}

export interface NewAlert {
  rule: Pick<AlertRuleRow, 'id' | 'project_id' | 'environment' | 'name' | 'severity'>;
  subject: string;
  message: string;
  revision: number | null;
  hostname: string | null;
  value: number;
}

const atOnce = 200;

/** Locks the rule until the commit. false: it has changed since it was read, or is disabled. */
export async function lockRule(tx: Db, { id, version }: Pick<AlertRuleRow, 'id' | 'version'>): Promise<boolean> {
  return changesOne(
    tx
      .updateTable('alert_rule')
      .set({ version })
      .where('id', '=', id)
      .where('version', '=', version)
      .where('enabled', '=', 1),
  );
}

/** Skips alerts whose rule and subject already have one firing. Returns the alerts that fired. */
export async function insertAlerts(
  tx: Db,
  { ids, clock }: IncidentParts,
  accountId: string,
  alerts: NewAlert[],
): Promise<AlertRow[]> {
  const fired: AlertRow[] = [];
  const rows = alerts.map(({ rule, ...alert }) => ({
    id: ids('alr'),
    account_id: accountId,
    project_id: rule.project_id,
    rule_id: rule.id,
    environment: rule.environment,
    name: rule.name,
    severity: rule.severity,
    fired_at: clock.now(),
    resolved_at: null,
    ...alert,
  }));
  for (let i = 0; i < rows.length; i += atOnce) {
    const inserted = await tx
      .insertInto('alert')
      .values(rows.slice(i, i + atOnce))
      .onConflict((conflict) => conflict.columns(['rule_id', 'subject']).where('resolved_at', 'is', null).doNothing())
      .returningAll()
      .execute();
    fired.push(...inserted);
  }
  return fired;
}

/** Selects firing alerts: by id, by rule (and subjects of it), or all of a project or one of its environments. */
type FiringFilter =
  | { ids: string[] }
  | { ruleId: string; subjects?: string[] }
  | { projectId: string; environment?: string };

/** Each is an event besides. Those of a rule that is gone or disabled which are left are resolved by the watcher. */
const resolvedAtOnce = 50;

/** Returns the alerts that were resolved: not more than one transaction takes. */
export async function markResolved(tx: Db, { clock }: IncidentParts, which: FiringFilter): Promise<AlertRow[]> {
  let firing = tx.selectFrom('alert').select('id').where('resolved_at', 'is', null);
  if ('ids' in which) firing = firing.where('id', 'in', which.ids);
  else if ('ruleId' in which) {
    firing = firing.where('rule_id', '=', which.ruleId);
    if (which.subjects) firing = firing.where('subject', 'in', which.subjects);
  } else {
    firing = firing.where('project_id', '=', which.projectId);
    if (which.environment !== undefined) firing = firing.where('environment', '=', which.environment);
  }
  return tx
    .updateTable('alert')
    .set({ resolved_at: clock.now() })
    .where('resolved_at', 'is', null)
    .where('id', 'in', firing.orderBy('id').limit(resolvedAtOnce))
    .returningAll()
    .execute();
}

/** Call it last in the transaction: events lock the project. */
export async function insertAlertEvents(tx: Db, parts: IncidentParts, rows: AlertRow[]): Promise<void> {
  for (const row of rows) {
    await insertEvent(tx, parts, {
      type: row.resolved_at === null ? 'alert.fired' : 'alert.resolved',
      accountId: row.account_id,
      projectId: row.project_id,
      data: presentAlert(row),
    });
    // An alert can abort a canary.
    publish(tx, 'environments', { projectId: row.project_id, environment: row.environment });
  }
}

/** Resolves the firing alerts of an environment, or of a whole project, before it is deleted. */
export async function endAlertsOf(
  tx: Db,
  parts: IncidentParts,
  which: { projectId: string; environment?: string },
): Promise<void> {
  // A disabled rule cannot fire in the meantime.
  let lock = tx.updateTable('alert_rule').set({ enabled: 0 }).where('project_id', '=', which.projectId);
  if (which.environment !== undefined) lock = lock.where('environment', '=', which.environment);
  await lock.execute();
  await insertAlertEvents(tx, parts, await markResolved(tx, parts, which));
}
