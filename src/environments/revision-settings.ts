// The settings that are part of a revision. A deployment copies them from the environment, and they hold for what it
// runs, however the environment is changed afterwards. Both tables have them in columns of the same names.
import type { Selectable } from 'kysely';
import { environmentDefaults, type HealthCheck, type PendingChange, type Resources } from '../contract/environments.ts';
import type { Db } from '../db/database.ts';
import { ChangedMeanwhile } from '../db/guarded.ts';
import type { Tables } from '../db/tables.ts';
import { LruCache } from '../lib/bounded-cache.ts';
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
type PendingChanges = (db: Db, environment: Environment, revision: RevisionSettings) => Promise<PendingChange[]>;

const remembered = 1000;

/**
 * Values of variables are compared here and go no further. Comparing means decrypting, which is remembered: a list of
 * environments decrypts what was changed since it was last shown, not everything.
 */
export function comparePending(seal: Seal): PendingChanges {
  const known = new LruCache<PendingChange[]>(remembered);
  const compareVariables = async (db: Db, environment: Environment, now: string | null, then: string | null) => {
    if (now === then) return [];
    const name = `${environment.project_id} ${environment.name} ${beginOf(now)} ${beginOf(then)}`;
    const open = (stored: string | null) => openVariables(db, stored, environment, seal);
    const changes = known.get(name) ?? changedVariables(await open(then), await open(now));
    known.set(name, changes);
    return changes;
  };
  return async (db, environment, revision) => [
    ...changedFields(flatten(revision), flatten(environment)),
    ...(await compareVariables(db, environment, environment.variables_sealed, revision.variables_sealed)),
  ];
}

/** Enough of a reference or of a seal to tell it from every other one. */
const beginOf = (stored: string | null): string => stored?.slice(0, 41) ?? '';

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

/** What `variables_sealed` begins with where it names a row of variable_set. */
const reference = 'set.';

/** Variables that are stored once, however many revisions have them. */
export interface VariableSet {
  /** For `variables_sealed`. */
  stored: string;
  sealed: string;
  bytes: number;
}

/** `variables` in an order that depends on nothing but them; null: there are none. */
export function sealVariables(variables: Record<string, string>, owner: Owner, seal: Seal): VariableSet | null {
  const text = JSON.stringify(variables);
  if (text === '{}') return null;
  const context = variablesContext(owner);
  const sealed = seal.seal(text, context);
  // With a key, so that nobody who reads the database can try values.
  const id = seal.mac(`${context} ${text}`).toString('base64url');
  return { stored: reference + id, sealed, bytes: sealed.length };
}

/** To be called once the row of the environment has been written: until the transaction ends nobody drops what it stores. */
export async function storeVariables(tx: Db, { project_id, name }: Owner, set: VariableSet): Promise<void> {
  const { stored, sealed, bytes } = set;
  await tx
    .insertInto('variable_set')
    .values({ project_id, environment: name, id: stored.slice(reference.length), sealed, bytes })
    .onConflict((conflict) => conflict.doNothing())
    .execute();
}

/** Sets that neither the environment nor one of its revisions has any more. */
export async function dropUnusedVariables(tx: Db, { project_id, name }: Owner): Promise<void> {
  const used = tx
    .selectFrom('revision')
    .select('variables_sealed as stored')
    .where('project_id', '=', project_id)
    .where('environment', '=', name)
    .where('variables_sealed', 'is not', null)
    .union(
      tx
        .selectFrom('environment')
        .select('variables_sealed as stored')
        .where('project_id', '=', project_id)
        .where('name', '=', name)
        .where('variables_sealed', 'is not', null),
    );
  const ids = (await used.execute()).map(({ stored }) => stored!.slice(reference.length));
  await tx
    .deleteFrom('variable_set')
    .where('project_id', '=', project_id)
    .where('environment', '=', name)
    .where('id', 'not in', [...ids, ''])
    .execute();
}

/** Opens what `variables_sealed` of an environment, or of one of its revisions, stands for. */
export async function openVariables(
  db: Db,
  stored: string | null,
  owner: Owner,
  seal: Seal,
): Promise<Record<string, string>> {
  if (stored === null) return {};
  const sealed = stored.startsWith(reference) ? await findSealed(db, owner, stored) : stored;
  return JSON.parse(seal.open(sealed, variablesContext(owner)));
}

/** Throws ChangedMeanwhile where they were replaced since the settings were read. */
export async function requireVariables(db: Db, stored: string | null, owner: Owner): Promise<void> {
  if (stored?.startsWith(reference)) await findSealed(db, owner, stored);
}

async function findSealed(db: Db, { project_id, name }: Owner, stored: string): Promise<string> {
  const row = await db
    .selectFrom('variable_set')
    .select('sealed')
    .where('project_id', '=', project_id)
    .where('environment', '=', name)
    .where('id', '=', stored.slice(reference.length))
    .executeTakeFirst();
  // They were replaced since the row that refers to them was read.
  if (!row) throw new ChangedMeanwhile();
  return row.sealed;
}
