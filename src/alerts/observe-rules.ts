// Reads the values that alert rules are about, with a few queries for all rules together.
import { sql } from 'kysely';
import type { AlertMetric } from '../contract/alert-rules.ts';
import { revisionId } from '../contract/references.ts';
import type { Db } from '../db/database.ts';
import { bucketMs } from '../traffic/measurements.ts';
import type { AlertRuleRow } from './alert-rule-queries.ts';
import { evaluateEveryMs, noObservation, type Observation, perRevision, type Sample } from './evaluate.ts';

export type WatchedRule = Omit<AlertRuleRow, 'hostname' | 'on_canary' | 'enabled' | 'created_at' | 'updated_at'>;

/** The subject of rules about the environment as a whole. */
const wholeEnvironment = 'environment';

/** By rule id, then by subject. */
type Observations = Map<string, Map<string, Collected>>;

interface Collected extends Observation {
  samples: Sample[];
}

/** There is nothing to observe in an environment to which nothing was ever deployed, but for its certificates. */
export async function listWatchedRules(db: Db): Promise<WatchedRule[]> {
  return db
    .selectFrom('alert_rule')
    .select(['id', 'project_id', 'environment', 'name', 'metric', 'comparator', 'threshold'])
    .select(['window_s', 'for_s', 'severity', 'version'])
    .where('enabled', '=', 1)
    .where('metric', '!=', 'external')
    .where((e) =>
      e.exists(
        e
          .selectFrom('environment')
          .select('environment.name')
          .whereRef('environment.project_id', '=', 'alert_rule.project_id')
          .whereRef('environment.name', '=', 'alert_rule.environment')
          .where('environment.deleted_at', 'is', null)
          .where((e) => e.or([e('next_revision', '>', 1), e('alert_rule.metric', '=', 'certificate_days_left')])),
      ),
    )
    .execute();
}

export async function observe(db: Db, rules: WatchedRule[], nowMs: number): Promise<Observations> {
  const observations: Observations = new Map();
  const of = (rule: string, subject: string): Collected => {
    const subjects = observations.get(rule) ?? new Map<string, Collected>();
    observations.set(rule, subjects);
    const collected = subjects.get(subject) ?? { ...noObservation, samples: [] };
    subjects.set(subject, collected);
    return collected;
  };
  const has = (...metrics: AlertMetric[]) => rules.some(({ metric }) => metrics.includes(metric));
  if (has('healthy_instances', 'request_rate')) {
    for (const row of await countHealthy(db)) of(row.rule, wholeEnvironment).healthyInstances = Number(row.count);
  }
  if (has('restarts')) {
    for (const row of await countEnds(db, nowMs)) of(row.rule, wholeEnvironment).restarts = Number(row.count);
  }
  const traffic = [
    ...(has('error_rate', 'request_rate') ? await sumRequests(db, rules, nowMs) : []),
    ...(has('p95_ms') ? await listLatencies(db, rules, nowMs) : []),
  ];
  for (const row of traffic) {
    const subject = perRevision(row.metric) ? revisionId(row.revision) : wholeEnvironment;
    of(row.rule, subject).samples.push(row);
  }
  if (has('certificate_days_left')) {
    for (const row of await listCertificateEnds(db)) of(row.rule, row.hostname).notAfterMs = row.not_after;
  }
  return observations;
}

interface RuleSample extends Sample {
  rule: string;
  metric: AlertMetric;
  revision: number;
}

/** All rules with a short window, and of those with a long window the ones in `rules`, which are due. */
function measuredRules(db: Db, rules: WatchedRule[], nowMs: number) {
  const alwaysS = evaluateEveryMs / 10;
  const longOnes = rules.filter((rule) => rule.window_s > alwaysS).map((rule) => rule.id);
  return db
    .selectFrom('alert_rule as r')
    .innerJoin('traffic as t', (join) =>
      join
        .onRef('t.project_id', '=', 'r.project_id')
        .onRef('t.environment', '=', 'r.environment')
        .on(sql<boolean>`t.at > ${nowMs - bucketMs} - r.window_s * 1000`),
    )
    .where('r.enabled', '=', 1)
    .where((e) => e.or([e('r.window_s', '<=', alwaysS), e('r.id', 'in', [...longOnes, ''])]));
}

/** One sample for the buckets entirely within the window, another for the bucket that is partly in it. */
async function sumRequests(db: Db, rules: WatchedRule[], nowMs: number): Promise<RuleSample[]> {
  const rows = await measuredRules(db, rules, nowMs)
    .where('r.metric', 'in', ['error_rate', 'request_rate'])
    .where('t.at', '<=', nowMs)
    .select((e) => [
      'r.id as rule',
      'r.metric',
      't.revision',
      e.fn.min('t.at').as('at'),
      e.fn.sum('t.requests').as('requests'),
      e.fn.sum('t.errors').as('errors'),
    ])
    .groupBy(['r.id', 'r.metric', 't.revision'])
    .groupBy(sql`case when t.at < ${nowMs} - r.window_s * 1000 then 1 else 0 end`)
    .execute();
  return rows.map((row) => ({
    ...row,
    at: Number(row.at),
    requests: Number(row.requests),
    errors: Number(row.errors),
    latency: null,
  }));
}

async function listLatencies(db: Db, rules: WatchedRule[], nowMs: number): Promise<RuleSample[]> {
  const rows = await measuredRules(db, rules, nowMs)
    .where('r.metric', '=', 'p95_ms')
    .select(['r.id as rule', 'r.metric', 't.revision', 't.at', 't.requests', 't.errors', 't.latency'])
    .execute();
  return rows.map((row) => ({
    rule: row.rule,
    metric: row.metric,
    revision: row.revision,
    at: row.at,
    requests: row.requests,
    errors: row.errors,
    latency: JSON.parse(row.latency) as number[],
  }));
}

/** Enabled rules, each with the active revision of its environment; those of environments without one are left out. */
const rulesOfLive = (db: Db) =>
  db
    .selectFrom('alert_rule as r')
    .innerJoin('revision as v', (join) =>
      join
        .onRef('v.project_id', '=', 'r.project_id')
        .onRef('v.environment', '=', 'r.environment')
        .on(sql<boolean>`v.state = 'active'`),
    )
    .where('r.enabled', '=', 1);

async function countHealthy(db: Db) {
  return rulesOfLive(db)
    .leftJoin('instance as i', (join) =>
      join
        .onRef('i.project_id', '=', 'v.project_id')
        .onRef('i.environment', '=', 'v.environment')
        .onRef('i.revision', '=', 'v.number')
        .on('i.state', '=', 'healthy'),
    )
    .select((e) => ['r.id as rule', e.fn.count('i.id').as('count')])
    .where('r.metric', 'in', ['healthy_instances', 'request_rate'])
    .groupBy('r.id')
    .execute();
}

/** Of any revision: a canary that keeps ending counts too. */
async function countEnds(db: Db, nowMs: number) {
  return rulesOfLive(db)
    .leftJoin('instance_end as i', (join) =>
      join
        .onRef('i.project_id', '=', 'r.project_id')
        .onRef('i.environment', '=', 'r.environment')
        .on(sql<boolean>`i.ended_at > ${nowMs} - r.window_s * 1000`),
    )
    .select((e) => ['r.id as rule', e.fn.count('i.id').as('count')])
    .where('r.metric', '=', 'restarts')
    .groupBy('r.id')
    .execute();
}

/** Rules of one hostname join by that name: every domain has such a rule, and there may be many domains. */
async function listCertificateEnds(db: Db) {
  const rules = db
    .selectFrom('alert_rule as r')
    .where('r.enabled', '=', 1)
    .where('r.metric', '=', 'certificate_days_left');
  const ofAll = rules
    .where('r.hostname', 'is', null)
    .innerJoin('domain as d', (join) =>
      join.onRef('d.project_id', '=', 'r.project_id').onRef('d.environment', '=', 'r.environment'),
    );
  const ofOne = rules
    .innerJoin('domain as d', 'd.hostname', 'r.hostname')
    .whereRef('d.project_id', '=', 'r.project_id')
    .whereRef('d.environment', '=', 'r.environment');
  const [all, one] = [ofAll, ofOne].map((query) =>
    query
      .innerJoin('certificate as c', 'c.id', 'd.certificate_id')
      .select(['r.id as rule', 'd.hostname', 'c.not_after'])
      .execute(),
  );
  return [...(await all!), ...(await one!)];
}
