// What the rules ask about, of all of them at once: the cost is a few queries, however many rules there are.
import { sql } from 'kysely';
import type { AlertMetric } from '../contract/alert-rules.ts';
import { revisionId } from '../contract/revision-id.ts';
import type { Db } from '../db/database.ts';
import { bucketMs } from '../traffic/measure/measurements.ts';
import { lookEveryMs, nothingSeen, perRevision, type Sample, type Seen } from './evaluate.ts';
import type { AlertRuleRow } from './queries.ts';

export type WatchedRule = Omit<AlertRuleRow, 'hostname' | 'on_canary' | 'enabled' | 'created_at' | 'updated_at'>;

/** About the environment as a whole. */
export const wholeEnvironment = 'environment';

/** By rule, then by subject. */
export type Observations = Map<string, Map<string, Known>>;

interface Known extends Seen {
  samples: Sample[];
}

export async function listWatchedRules(db: Db): Promise<WatchedRule[]> {
  return db
    .selectFrom('alert_rule')
    .select(['id', 'project_id', 'environment', 'name', 'metric', 'comparator', 'threshold'])
    .select(['window_s', 'for_s', 'severity', 'version'])
    .where('enabled', '=', 1)
    .where('metric', '!=', 'external')
    .execute();
}

export async function observe(db: Db, rules: WatchedRule[], nowMs: number): Promise<Observations> {
  const seen: Observations = new Map();
  const of = (rule: string, subject: string): Known => {
    const subjects = seen.get(rule) ?? new Map<string, Known>();
    seen.set(rule, subjects);
    const known = subjects.get(subject) ?? { ...nothingSeen, samples: [] };
    subjects.set(subject, known);
    return known;
  };
  const has = (...metrics: AlertMetric[]) => rules.some(({ metric }) => metrics.includes(metric));
  if (has('healthy_instances', 'request_rate')) {
    for (const row of await countHealthy(db)) of(row.rule, wholeEnvironment).healthyInstances = Number(row.count);
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
  return seen;
}

interface TrafficRow extends Sample {
  rule: string;
  metric: AlertMetric;
  revision: number;
}

/** Rules of a short window always, those of a long one when it is their turn. */
function measuredRules(db: Db, rules: WatchedRule[], nowMs: number) {
  const alwaysS = lookEveryMs / 10;
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

/** Buckets wholly within the window come as one sample, the one that reaches into it as another. */
async function sumRequests(db: Db, rules: WatchedRule[], nowMs: number): Promise<TrafficRow[]> {
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

async function listLatencies(db: Db, rules: WatchedRule[], nowMs: number): Promise<TrafficRow[]> {
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

/** Only of environments that have an active revision. */
async function countHealthy(db: Db) {
  return db
    .selectFrom('alert_rule as r')
    .innerJoin('revision as v', (join) =>
      join
        .onRef('v.project_id', '=', 'r.project_id')
        .onRef('v.environment', '=', 'r.environment')
        .on(sql<boolean>`v.state = 'active'`),
    )
    .leftJoin('instance as i', (join) =>
      join
        .onRef('i.project_id', '=', 'v.project_id')
        .onRef('i.environment', '=', 'v.environment')
        .onRef('i.revision', '=', 'v.number')
        .on('i.state', '=', 'healthy'),
    )
    .select((e) => ['r.id as rule', e.fn.count('i.id').as('count')])
    .where('r.enabled', '=', 1)
    .where('r.metric', 'in', ['healthy_instances', 'request_rate'])
    .groupBy('r.id')
    .execute();
}

/** A rule of one hostname finds it by name: where there are many domains, each has one. */
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
