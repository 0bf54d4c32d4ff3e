// The rules that nobody has to make: two of every environment, one of every domain.
import type { CompiledQuery } from 'kysely';
import type { Db } from '../db/database.ts';
import type { Tables } from '../db/tables.ts';
import type { Clock } from '../lib/clock.ts';
import type { IdSource } from '../lib/ids.ts';

export interface RuleSource {
  ids: IdSource;
  clock: Clock;
}

export interface RulePlace {
  projectId: string;
  environment: string;
}

type RuleRow = Tables['alert_rule'];
type Chosen = Pick<RuleRow, 'name' | 'metric' | 'comparator' | 'threshold' | 'for_s' | 'severity' | 'on_canary'>;

const errors: Chosen = {
  name: 'Errors',
  metric: 'error_rate',
  comparator: 'gt',
  threshold: 0.05,
  for_s: 0,
  severity: 'critical',
  on_canary: 'abort',
};

const instances: Chosen = {
  name: 'Instances',
  metric: 'healthy_instances',
  comparator: 'lt',
  threshold: 1,
  for_s: 15,
  severity: 'critical',
  on_canary: 'none',
};

const certificate: Chosen = {
  name: '',
  metric: 'certificate_days_left',
  comparator: 'lt',
  threshold: 7,
  for_s: 0,
  severity: 'warning',
  on_canary: 'none',
};

export const defaultWindowS = 60;

/** The columns always come in this order: a prepared insert relies on it. */
const rowOf = ({ ids, clock }: RuleSource, { projectId, environment }: RulePlace, chosen: Chosen): RuleRow => ({
  id: ids('rul'),
  project_id: projectId,
  environment,
  name: chosen.name,
  metric: chosen.metric,
  comparator: chosen.comparator,
  threshold: chosen.threshold,
  hostname: null,
  window_s: defaultWindowS,
  for_s: chosen.for_s,
  severity: chosen.severity,
  on_canary: chosen.on_canary,
  enabled: 1,
  created_at: clock.now(),
  updated_at: clock.now(),
  version: 1,
});

let insertTwo: CompiledQuery | undefined;

/** In the transaction that makes the environment. */
export async function insertDefaultRules(tx: Db, source: RuleSource, place: RulePlace): Promise<void> {
  const rows = [rowOf(source, place, errors), rowOf(source, place, instances)];
  insertTwo ??= tx.insertInto('alert_rule').values(rows).compile();
  await tx.executeQuery({ ...insertTwo, parameters: rows.flatMap((row) => Object.values(row)) });
}

/** In the transaction that makes the domain. */
export async function insertDomainRule(
  tx: Db,
  source: RuleSource,
  { hostname, ...place }: RulePlace & { hostname: string },
): Promise<void> {
  await tx
    .insertInto('alert_rule')
    .values({ ...rowOf(source, place, { ...certificate, name: domainRuleName(hostname) }), hostname })
    // Somebody has made one of that name: then that is the one.
    .onConflict((conflict) => conflict.columns(['project_id', 'environment', 'name']).doNothing())
    .execute();
}

/** In the transaction that deletes the domain: every rule about it. The watcher resolves what they have firing. */
export async function deleteDomainRule(
  tx: Db,
  { projectId, environment, hostname }: RulePlace & { hostname: string },
): Promise<void> {
  await tx
    .deleteFrom('alert_rule')
    .where('project_id', '=', projectId)
    .where('environment', '=', environment)
    .where('hostname', '=', hostname)
    .execute();
}

/** A name has at most 100 characters, a hostname up to 253. */
function domainRuleName(hostname: string): string {
  const shown = hostname.length <= 80 ? hostname : `${hostname.slice(0, 39)}…${hostname.slice(-40)}`;
  return `Certificate of ${shown}`;
}
