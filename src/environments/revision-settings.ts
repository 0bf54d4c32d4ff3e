// The settings that are part of a revision. A deployment copies them from the environment, and they hold for what it
// runs, however the environment is changed afterwards. Both tables have them in columns of the same names.
import type { Selectable } from 'kysely';
import { environmentDefaults, type HealthCheck, type PendingChange, type Resources } from '../contract/environments.ts';
import type { Tables } from '../db/tables.ts';
import { Memo } from '../lib/bounded-cache.ts';
import type { Seal } from '../lib/seal.ts';

export type RevisionSettings = Pick<
  Selectable<Tables['revision']>,
  'port' | 'variables_sealed' | 'health_check' | 'resources'
>;

export const revisionSettingsOf = (row: RevisionSettings): RevisionSettings => ({
  port: row.port,
  variables_sealed: row.variables_sealed,
  health_check: row.health_check,
  resources: row.resources,
});

/** Rows from before a field existed have its default. */
export const healthCheckOf = ({ health_check }: Pick<RevisionSettings, 'health_check'>): HealthCheck => ({
  ...environmentDefaults.health_check,
  ...JSON.parse(health_check),
});

export const resourcesOf = ({ resources }: Pick<RevisionSettings, 'resources'>): Resources => ({
  ...environmentDefaults.resources,
  ...JSON.parse(resources),
});

type Environment = RevisionSettings & { project_id: string; name: string };
/** What of the environment a revision does not have; it applies with the next deployment. */
type PendingChanges = (environment: Environment, revision: RevisionSettings) => PendingChange[];

const remembered = 1000;

/**
 * Values of variables are compared here and go no further. Comparing means decrypting, which is remembered: a list of
 * environments decrypts what was changed since it was last shown, not everything.
 */
export function comparePending(seal: Seal): PendingChanges {
  const memo = new Memo<PendingChange[]>(remembered);
  return (environment, revision) => {
    const [now, then] = [environment.variables_sealed, revision.variables_sealed];
    const variables =
      now === then
        ? []
        : memo.get(`${environment.project_id} ${environment.name} ${beginOf(now)} ${beginOf(then)}`, () => {
            const open = (sealed: string | null) => openSealedVariables(sealed, environment, seal);
            return changedVariables(open(then), open(now));
          });
    return [...changedFields(flatten(revision), flatten(environment)), ...variables];
  };
}

/** Nonce and tag, which no two seals share. */
const beginOf = (sealed: string | null): string => sealed?.slice(0, 41) ?? '';

function flatten(row: RevisionSettings): Record<string, string | null> {
  const groups = { health_check: healthCheckOf(row), resources: resourcesOf(row) };
  const nested = Object.entries(groups).flatMap(([group, values]) =>
    Object.entries(values).map(([name, value]) => [`${group}.${name}`, value === null ? null : String(value)]),
  );
  return { port: String(row.port), ...Object.fromEntries(nested) };
}

function changedFields(before: Record<string, string | null>, after: Record<string, string | null>): PendingChange[] {
  return Object.keys(after).flatMap((field) => {
    const [from, to] = [before[field] ?? null, after[field] ?? null];
    return from === to ? [] : [{ field, change: changeOf(from !== null, to !== null), from, to }];
  });
}

function changedVariables(before: Record<string, string>, after: Record<string, string>): PendingChange[] {
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])].sort();
  return names
    .filter((name) => before[name] !== after[name])
    .map((name) => ({
      field: `variables.${name}`,
      change: changeOf(Object.hasOwn(before, name), Object.hasOwn(after, name)),
      from: null,
      to: null,
    }));
}

const changeOf = (was: boolean, is: boolean): PendingChange['change'] =>
  was && is ? 'changed' : is ? 'added' : 'removed';

/** The environment that the variables belong to. */
interface Owner {
  project_id: string;
  name: string;
}

const variablesContext = ({ project_id, name }: Owner): string => `variables ${project_id} ${name}`;

/** Opens the variables of an environment, or the copy that one of its revisions keeps. */
export function openSealedVariables(sealed: string | null, owner: Owner, seal: Seal): Record<string, string> {
  return sealed === null ? {} : JSON.parse(seal.open(sealed, variablesContext(owner)));
}

export const sealVariables = (variables: Record<string, string>, owner: Owner, seal: Seal): string =>
  seal.seal(JSON.stringify(variables), variablesContext(owner));
