import * as contract from '../contract/alert-rules.ts';
import { ApiError, type ErrorDetail, quotaExceeded } from '../contract/errors.ts';
import type { Db } from '../db/database.ts';
import { isUniqueViolation } from '../db/database-errors.ts';
import { lockRow } from '../db/guarded.ts';
import { environmentUnknown, findEnvironment } from '../environments/environment-queries.ts';
import { type ServedRoute, serve } from '../http/api/served-route.ts';
import { requireProject } from '../projects/project-queries.ts';
import {
  type AlertRuleRow,
  countAlertRules,
  deleteAlertRule,
  insertAlertRule,
  listAlertRules,
  presentAlertRule,
  requireAlertRule,
  updateAlertRule,
} from './alert-rule-queries.ts';
import { defaultWindowS } from './default-rules.ts';
import { type IncidentParts, insertAlertEvents, markResolved } from './incidents.ts';

const maxRules = 100;

export function alertRuleRoutes(parts: IncidentParts): ServedRoute[] {
  return [...readingRoutes(), createRoute(parts), ...changingRoutes(parts)];
}

function readingRoutes(): ServedRoute[] {
  return [
    serve(contract.listAlertRules, async (call, db) => {
      const project = await requireProject(db, call.caller, call.params.id);
      const rows = await listAlertRules(db, project.id, call.query, call.page);
      return { body: call.paginate(rows, (row) => row.id, presentAlertRule) };
    }),

    serve(contract.getAlertRule, async (call, db) => {
      const project = await requireProject(db, call.caller, call.params.id);
      const row = await requireAlertRule(db, project.id, call.params.rul);
      return { body: presentAlertRule(row), version: row.version };
    }),
  ];
}

const createRoute = (parts: IncidentParts): ServedRoute =>
  serve(contract.createAlertRule, async (call, tx) => {
    const project = await requireProject(tx, call.caller, call.params.id);
    const { body } = call;
    refuseIncomplete(body);
    if (!(await findEnvironment(tx, project.id, body.environment))) throw environmentUnknown(body.environment);
    await refuseTooMany(tx, project.id, body.environment, body.hostname != null);
    const row = newRule(parts, project.id, body);
    await insertAlertRule(tx, row).catch((error) => {
      throw isUniqueViolation(error) ? ruleExists(row.name) : error;
    });
    return {
      body: presentAlertRule(row),
      version: row.version,
      location: `/projects/${project.id}/alert-rules/${row.id}`,
    };
  });

const newRule = ({ ids, clock }: IncidentParts, projectId: string, body: contract.CreateAlertRule): AlertRuleRow => ({
  id: ids('rul'),
  project_id: projectId,
  environment: body.environment,
  name: body.name,
  metric: body.metric,
  comparator: body.comparator ?? 'gt',
  threshold: body.threshold ?? 0,
  hostname: body.hostname ?? null,
  window_s: body.window_s ?? defaultWindowS,
  for_s: body.for_s ?? 0,
  severity: body.severity ?? 'warning',
  on_canary: body.on_canary ?? 'none',
  enabled: body.enabled === false ? 0 : 1,
  created_at: clock.now(),
  updated_at: clock.now(),
  version: 1,
});

function changingRoutes(parts: IncidentParts): ServedRoute[] {
  return [
    serve(contract.updateAlertRule, async (call, tx) => {
      const project = await requireProject(tx, call.caller, call.params.id);
      const row = await requireAlertRule(tx, project.id, call.params.rul);
      call.expectVersion(row.version);
      const { enabled, ...changes } = call.body;
      const changed = await updateAlertRule(tx, row, {
        ...changes,
        ...(enabled !== undefined && { enabled: enabled ? 1 : 0 }),
        updated_at: parts.clock.now(),
      }).catch((error) => {
        throw isUniqueViolation(error) ? ruleExists(call.body.name!) : error;
      });
      if (changed.enabled === 0) await endAlertsOfRule(tx, row.id);
      return { body: presentAlertRule(changed), before: presentAlertRule(row), version: changed.version };
    }),

    serve(contract.deleteAlertRule, async (call, tx) => {
      const project = await requireProject(tx, call.caller, call.params.id);
      const row = await requireAlertRule(tx, project.id, call.params.rul);
      call.expectVersion(row.version);
      await deleteAlertRule(tx, row);
      await endAlertsOfRule(tx, row.id);
      return { body: undefined, before: presentAlertRule(row) };
    }),
  ];

  /** Call it after the change of the rule, which keeps other processes from firing another alert for it. */
  async function endAlertsOfRule(tx: Db, ruleId: string): Promise<void> {
    await tx.deleteFrom('alert_watch').where('rule_id', '=', ruleId).execute();
    await insertAlertEvents(tx, parts, await markResolved(tx, parts, { ruleId }));
  }
}

function refuseIncomplete(body: contract.CreateAlertRule): void {
  const details: ErrorDetail[] = [];
  const isMeasured = body.metric !== 'external';
  if (isMeasured && body.comparator === undefined) details.push({ path: 'body.comparator', message: 'is missing' });
  if (isMeasured && body.threshold === undefined) details.push({ path: 'body.threshold', message: 'is missing' });
  if (body.hostname != null && body.metric !== 'certificate_days_left') {
    details.push({ path: 'body.hostname', message: 'only with metric certificate_days_left' });
  }
  if (details.length > 0) throw new ApiError('invalid_request', 'The rule does not fit its metric.', { details });
}

/** Throws quota_exceeded if the environment has no room for `more` rules. */
export async function refuseTooMany(
  tx: Db,
  projectId: string,
  environment: string,
  ofHostname = false,
  more = 1,
): Promise<void> {
  await lockRow(tx, 'project', projectId);
  if ((await countAlertRules(tx, projectId, environment, ofHostname)) + more <= maxRules) return;
  throw quotaExceeded(`An environment has at most ${maxRules} alert rules.`, 'alert_rules', maxRules);
}

const ruleExists = (name: string) =>
  new ApiError('alert_rule_exists', 'The environment already has an alert rule with this name.', {
    details: [{ path: 'body.name', message: name }],
  });
