// The rules that are created automatically: two for every environment, one for every domain.
import type { CompiledQuery } from 'kysely';
import type { Db } from '../db/database.ts';
import { runCompiled } from '../db/prepared.ts';
import type { Tables } from '../db/tables.ts';
import type { EnvironmentKey } from '../environments/environment-key.ts';
import type { Clock } from '../lib/clock.ts';
import type { IdSource } from '../lib/ids.ts';

interface RuleParts {
  ids: IdSource;
  clock: Clock;
}

type RuleRow = Tables['alert_rule'];
type Preset = Pick<RuleRow, 'name' | 'metric' | 'comparator' | 'threshold' | 'for_s' | 'severity' | 'on_canary'>;

const errors: Preset = {
  name: 'Errors',
  metric: 'error_rate',
  comparator: 'gt',
  threshold: 0.05,
  for_s: 0,
  severity: 'critical',
  on_canary: 'abort',
};

const instances: Preset = {
  name: 'Instances',
  metric: 'healthy_instances',
  comparator: 'lt',
  threshold: 1,
  for_s: 15,
  severity: 'critical',
  on_canary: 'none',
};

const certificate: Preset = {
  name: '',
  metric: 'certificate_days_left',
  comparator: 'lt',
  threshold: 7,
  for_s: 0,
  severity: 'warning',
  on_canary: 'none',
};

export const defaultWindowS = 60;

/** The prepared insert relies on the order of these columns. */
const rowOf = ({ ids, clock }: RuleParts, { projectId, environment }: EnvironmentKey, preset: Preset): RuleRow => ({
  id: ids('rul'),
  project_id: projectId,
  environment,
  name: preset.name,
  metric: preset.metric,
  comparator: preset.comparator,
  threshold: preset.threshold,
  hostname: null,
  window_s: defaultWindowS,
  for_s: preset.for_s,
  severity: preset.severity,
  on_canary: preset.on_canary,
  enabled: 1,
  created_at: clock.now(),
  updated_at: clock.now(),
  version: 1,
});

let insertTwo: CompiledQuery | undefined;

/** Called in the transaction that creates the environment. */
export async function insertDefaultRules(tx: Db, parts: RuleParts, key: EnvironmentKey): Promise<void> {
  const rows = [rowOf(parts, key, errors), rowOf(parts, key, instances)];
  insertTwo ??= tx.insertInto('alert_rule').values(rows).compile();
  await runCompiled(tx, { ...insertTwo, parameters: rows.flatMap((row) => Object.values(row)) });
}

/** Called in the transaction that creates the domain. */
export async function insertDomainRule(
  tx: Db,
  parts: RuleParts,
  { hostname, ...key }: EnvironmentKey & { hostname: string },
): Promise<void> {
  await tx
    .insertInto('alert_rule')
    .values({ ...rowOf(parts, key, { ...certificate, name: domainRuleName(hostname) }), hostname })
    // A rule of that name that a user created stays as it is.
    .onConflict((conflict) => conflict.columns(['project_id', 'environment', 'name']).doNothing())
    .execute();
}

/** Called in the transaction that deletes the domain. The watcher then resolves the firing alerts of these rules. */
export async function deleteDomainRules(
  tx: Db,
  { projectId, environment, hostname }: EnvironmentKey & { hostname: string },
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
