// Alertmanager's webhook: an alert that fires or is resolved in Prometheus fires or is resolved here. Alertmanager
// repeats its messages, in any order and perhaps to several processes at once; a repetition changes nothing.
import { type Severity, severities } from '../contract/alert-rules.ts';
import type { AlertmanagerMessage } from '../contract/alerts.ts';
import type { Db } from '../db/database.ts';
import { environmentUnknown } from '../environments/environment-queries.ts';
import { listShownEnvironments } from '../projects/project-queries.ts';
import type { AlertRow } from './alert-queries.ts';
import { type AlertRuleRow, insertAlertRule, listRulesNamed } from './alert-rule-queries.ts';
import { refuseTooMany } from './alert-rule-routes.ts';
import { defaultWindowS } from './default-rules.ts';
import { type IncidentParts, insertAlerts, lockRule, markResolved, type NewAlert } from './incidents.ts';

type SentAlert = AlertmanagerMessage['alerts'][number];

/** An alert of a message, in our terms. */
interface ExternalAlert {
  environment: string;
  name: string;
  severity: Severity;
  isFiring: boolean;
  subject: string;
  message: string;
  revision: number | null;
  value: number;
}

const defaultEnvironment = 'production';

function readAlert(alert: SentAlert, environments: readonly string[], requested: string | undefined): ExternalAlert {
  const { labels, annotations } = alert;
  const name = cut(labels.alertname, 100) || 'Alertmanager';
  const revision = /^r([1-9][0-9]{0,9})$/.exec(labels.revision ?? '');
  const value = Number(annotations.value?.trim() || Number.NaN);
  const isSensible = Number.isFinite(value) && Math.abs(value) <= 1e12;
  return {
    environment: environmentOf(labels.environment, environments, requested),
    name,
    severity: severities.find((severity) => severity === labels.severity) ?? 'warning',
    isFiring: alert.status === 'firing',
    subject: alert.fingerprint,
    message: cut(annotations.summary, 2000) || cut(annotations.description, 2000) || name,
    revision: revision ? Number(revision[1]) : null,
    value: isSensible ? value : 1,
  };
}

/** The environment that the label names, else the one of the request, else production. */
function environmentOf(
  label: string | undefined,
  environments: readonly string[],
  requested: string | undefined,
): string {
  if (label !== undefined && environments.includes(label)) return label;
  const name = requested ?? defaultEnvironment;
  if (environments.includes(name)) return name;
  throw environmentUnknown(name, requested === undefined ? 'body.alerts.labels.environment' : 'query.environment');
}

const cut = (text: string | undefined, length: number): string => (text ?? '').trim().slice(0, length).toWellFormed();

/** Each alert is up to four rows: its rule, itself, its event, and what becomes of that. */
const alertsAtOnce = 50;

/** A repetition changes nothing, so each part may be committed by itself. */
export function splitMessage(message: AlertmanagerMessage): AlertmanagerMessage[] {
  const { alerts } = message;
  const starts = Array.from({ length: Math.ceil(alerts.length / alertsAtOnce) || 1 }, (_, n) => n * alertsAtOnce);
  return starts.map((start) => ({ ...message, alerts: alerts.slice(start, start + alertsAtOnce) }));
}

async function readMessage(db: Db, projectId: string, message: AlertmanagerMessage, environment: string | undefined) {
  const environments = (await listShownEnvironments(db, projectId)).map(({ name }) => name);
  const alerts = message.alerts.map((alert) => readAlert(alert, environments, environment));
  const groups = [...Map.groupBy(alerts, (alert) => alert.environment)].sort(([a], [b]) => (a < b ? -1 : 1));
  return { alerts, groups };
}

/** A message that would create too many rules is refused whole. */
export async function refuseTooManyRules(
  db: Db,
  project: { id: string },
  message: AlertmanagerMessage,
  environment: string | undefined,
): Promise<void> {
  const { groups } = await readMessage(db, project.id, message, environment);
  for (const [name, group] of groups) {
    const { missing } = await knownRules(db, project.id, name, group);
    if (missing.length > 0) await refuseTooMany(db, project.id, name, false, missing.length);
  }
}

/** Returns the alerts that the message fired and resolved. */
export async function receiveMessage(
  tx: Db,
  parts: IncidentParts,
  project: { id: string; account_id: string },
  message: AlertmanagerMessage,
  environment: string | undefined,
): Promise<{ fired: AlertRow[]; resolved: AlertRow[] }> {
  const { alerts, groups } = await readMessage(tx, project.id, message, environment);
  const rules = new Map<string, Map<string, AlertRuleRow>>();
  for (const [name, group] of groups) rules.set(name, await rulesFor(tx, parts, project.id, name, group));
  const ruleOf = (alert: ExternalAlert) => rules.get(alert.environment)?.get(alert.name);
  const firing = alerts.filter((alert) => alert.isFiring).flatMap((alert) => newAlert(ruleOf(alert), alert));
  const fired = await insertAlerts(tx, parts, project.account_id, firing);
  const resolved: AlertRow[] = [];
  for (const [rule, group] of Map.groupBy(
    alerts.filter((alert) => !alert.isFiring),
    ruleOf,
  )) {
    const subjects = group.map(({ subject }) => subject);
    if (rule) resolved.push(...(await markResolved(tx, parts, { ruleId: rule.id, subjects })));
  }
  return { fired, resolved };
}

function newAlert(rule: AlertRuleRow | undefined, { subject, message, revision, value }: ExternalAlert): NewAlert[] {
  return rule ? [{ rule, subject, message, revision, hostname: null, value }] : [];
}

/**
 * The enabled rules by the names that Alertmanager uses, locked until the commit. A firing alert without a rule creates
 * one.
 */
async function rulesFor(
  tx: Db,
  parts: IncidentParts,
  projectId: string,
  environment: string,
  alerts: ExternalAlert[],
): Promise<Map<string, AlertRuleRow>> {
  const { names, known, find, missing } = await knownRules(tx, projectId, environment, alerts);
  if (missing.length > 0) await refuseTooMany(tx, projectId, environment, false, missing.length);
  for (const name of missing) {
    const isTaken = known.some((rule) => rule.name === name);
    const { severity } = alerts.find((alert) => alert.isFiring && alert.name === name)!;
    const rule = externalRule(parts, projectId, environment, isTaken ? alternativeName(name) : name, severity);
    await insertAlertRule(tx, rule);
    known.push(rule);
  }
  const rules = new Map<string, AlertRuleRow>();
  for (const name of names) {
    const rule = find(name);
    if (rule && (await lockRule(tx, rule))) rules.set(name, rule);
  }
  return rules;
}

async function knownRules(db: Db, projectId: string, environment: string, alerts: ExternalAlert[]) {
  const names = [...new Set(alerts.map(({ name }) => name))].sort();
  const known = await listRulesNamed(db, projectId, environment, [...names, ...names.map(alternativeName)]);
  const find = (name: string) =>
    [name, alternativeName(name)]
      .map((one) => known.find((rule) => rule.name === one && rule.metric === 'external'))
      .find((rule) => rule !== undefined);
  const firing = new Set(alerts.filter(({ isFiring }) => isFiring).map(({ name }) => name));
  const missing = names.filter((name) => firing.has(name) && !find(name));
  return { names, known, find, missing };
}

/** For an external rule whose name belongs to a measured rule. */
const alternativeName = (name: string): string => `${name.slice(0, 85).toWellFormed()} (Alertmanager)`;

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
