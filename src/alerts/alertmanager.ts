// Alertmanager's webhook: what fires and ends at Prometheus fires and ends here. It sends the same again and again, in
// any order and perhaps to several processes at once; only what is new changes anything.
import { type Severity, severities } from '../contract/alert-rules.ts';
import type { AlertmanagerMessage } from '../contract/alerts.ts';
import type { Db } from '../db/database.ts';
import { listEnvironmentNames } from '../projects/queries.ts';
import { defaultWindowS } from './defaults.ts';
import { type IncidentParts, insertAlerts, lockRule, markResolved, type NewAlert } from './incidents.ts';
import { type AlertRow, type AlertRuleRow, insertAlertRule, listRulesNamed } from './queries.ts';
import { environmentUnknown, refuseTooMany } from './rule-routes.ts';

type Incoming = AlertmanagerMessage['alerts'][number];

/** What one alert of a message means here. */
export interface Reading {
  environment: string;
  name: string;
  severity: Severity;
  isFiring: boolean;
  subject: string;
  message: string;
  revision: number | null;
  value: number;
}

const usualEnvironment = 'production';

/** Where nothing else is said, an alert is about production. */
export function readAlert(alert: Incoming, environments: readonly string[], asked: string | undefined): Reading {
  const { labels, annotations } = alert;
  const name = cut(labels.alertname, 100) || 'Alertmanager';
  const revision = /^r([1-9][0-9]{0,9})$/.exec(labels.revision ?? '');
  const value = Number(annotations.value?.trim() || Number.NaN);
  const isSensible = Number.isFinite(value) && Math.abs(value) <= 1e12;
  return {
    environment: environmentOf(labels.environment, environments, asked),
    name,
    severity: severities.find((severity) => severity === labels.severity) ?? 'warning',
    isFiring: alert.status === 'firing',
    subject: alert.fingerprint,
    message: cut(annotations.summary, 2000) || cut(annotations.description, 2000) || name,
    revision: revision ? Number(revision[1]) : null,
    value: isSensible ? value : 1,
  };
}

function environmentOf(label: string | undefined, environments: readonly string[], asked: string | undefined): string {
  if (label !== undefined && environments.includes(label)) return label;
  const name = asked ?? usualEnvironment;
  if (environments.includes(name)) return name;
  throw environmentUnknown(name, asked === undefined ? 'body.alerts.labels.environment' : 'query.environment');
}

const cut = (text: string | undefined, length: number): string => (text ?? '').trim().slice(0, length).toWellFormed();

/** Gives the alerts that began and ended. */
export async function takeMessage(
  tx: Db,
  parts: IncidentParts,
  project: { id: string; account_id: string },
  message: AlertmanagerMessage,
  environment: string | undefined,
): Promise<{ fired: AlertRow[]; resolved: AlertRow[] }> {
  const names = await listEnvironmentNames(tx, project.id);
  const readings = message.alerts.map((alert) => readAlert(alert, names, environment));
  const groups = [...Map.groupBy(readings, (reading) => reading.environment)].sort(([a], [b]) => (a < b ? -1 : 1));
  const rules = new Map<string, Map<string, AlertRuleRow>>();
  for (const [name, group] of groups) rules.set(name, await rulesFor(tx, parts, project.id, name, group));
  const ruleOf = (reading: Reading) => rules.get(reading.environment)?.get(reading.name);
  const fresh = readings.filter((reading) => reading.isFiring).flatMap((reading) => alertOf(ruleOf(reading), reading));
  const fired = await insertAlerts(tx, parts, project.account_id, fresh);
  const resolved: AlertRow[] = [];
  for (const [rule, group] of Map.groupBy(
    readings.filter((reading) => !reading.isFiring),
    ruleOf,
  )) {
    const subjects = group.map(({ subject }) => subject);
    if (rule) resolved.push(...(await markResolved(tx, parts, { ruleId: rule.id, subjects })));
  }
  return { fired, resolved };
}

function alertOf(rule: AlertRuleRow | undefined, { subject, message, revision, value }: Reading): NewAlert[] {
  return rule ? [{ rule, subject, message, revision, hostname: null, value }] : [];
}

/** By the names that Alertmanager uses: those that are looked at, held until the commit. What fires first makes its rule. */
async function rulesFor(
  tx: Db,
  parts: IncidentParts,
  projectId: string,
  environment: string,
  readings: Reading[],
): Promise<Map<string, AlertRuleRow>> {
  const wanted = [...new Set(readings.map(({ name }) => name))].sort();
  const known = await listRulesNamed(tx, projectId, environment, [...wanted, ...wanted.map(otherName)]);
  const find = (name: string) =>
    [name, otherName(name)]
      .map((one) => known.find((rule) => rule.name === one && rule.metric === 'external'))
      .find((rule) => rule !== undefined);
  const missing = wanted.filter((name) => !find(name) && readings.some((one) => one.isFiring && one.name === name));
  if (missing.length > 0) await refuseTooMany(tx, projectId, environment, false, missing.length);
  for (const name of missing) {
    const isTaken = known.some((rule) => rule.name === name);
    const { severity } = readings.find((reading) => reading.isFiring && reading.name === name)!;
    const rule = externalRule(parts, projectId, environment, isTaken ? otherName(name) : name, severity);
    await insertAlertRule(tx, rule);
    known.push(rule);
  }
  const rules = new Map<string, AlertRuleRow>();
  for (const name of wanted) {
    const rule = find(name);
    if (rule && (await lockRule(tx, rule))) rules.set(name, rule);
  }
  return rules;
}

/** Where a rule that is measured here has the name already. */
const otherName = (name: string): string => `${name.slice(0, 85).toWellFormed()} (Alertmanager)`;

const externalRule = (
  { ids, clock }: IncidentParts,
  projectId: string,
  environment: string,
  name: string,
  severity: Severity,
): AlertRuleRow => ({
  id: ids('rul'),
  project_id: projectId,
  environment,
  name,
  metric: 'external',
  comparator: 'gt',
  threshold: 0,
  hostname: null,
  window_s: defaultWindowS,
  for_s: 0,
  severity,
  on_canary: 'none',
  enabled: 1,
  created_at: clock.now(),
  updated_at: clock.now(),
  version: 1,
});
