// Projects in the database, and as the API shows them.
import { type Selectable, sql } from 'kysely';
import { notFound } from '../contract/errors.ts';
import { healthStates, type Project } from '../contract/projects.ts';
import type { Caller } from '../contract/scopes.ts';
import { type Db, dialectOf } from '../db/database.ts';
import { changeOne } from '../db/guarded.ts';
import type { Page } from '../db/keyset-page.ts';
import { jsonTexts, prepared, preparedInsert } from '../db/prepared.ts';
import { type Found, searchNewestFirst } from '../db/search.ts';
import type { Tables } from '../db/tables.ts';
import { isoTime } from '../lib/iso-time.ts';

export type ProjectRow = Selectable<Tables['project']>;

const selectById = prepared((db) =>
  db
    .selectFrom('project')
    .selectAll()
    .where('id', '=', '')
    .where('account_id', '=', '')
    .where('deleted_at', 'is', null),
);

/** Throws 404 if there is no such project, or the caller may not see it. */
export async function requireProject(db: Db, caller: Caller, id: string): Promise<ProjectRow> {
  const isVisible = caller.projectIds === null || caller.projectIds.includes(id);
  const [row] = isVisible ? await selectById(db, id, caller.accountId) : [];
  if (!row) throw notFound('id', id);
  return row;
}

export async function listProjects(
  db: Db,
  caller: Caller,
  search: string | undefined,
  page: Page,
): Promise<Found<ProjectRow>> {
  let query = db
    .selectFrom('project')
    .selectAll()
    .where('account_id', '=', caller.accountId)
    .where('deleted_at', 'is', null);
  if (caller.projectIds !== null) query = query.where('id', 'in', [...caller.projectIds, '']);
  return searchNewestFirst(query, search, [sql`name`, sql`slug`, sql`description`, sql`labels`], page);
}

/** The ids among these that are projects the caller may see. */
export async function listKnownProjects(db: Db, caller: Caller, ids: string[]): Promise<string[]> {
  if (ids.length === 0) return [];
  const rows = await db
    .selectFrom('project')
    .select('id')
    .where('account_id', '=', caller.accountId)
    .where('deleted_at', 'is', null)
    .where('id', 'in', ids)
    .execute();
  return rows.map((row) => row.id).filter((id) => caller.projectIds === null || caller.projectIds.includes(id));
}

export const insertProject = preparedInsert('project');

export async function updateProject(db: Db, row: ProjectRow): Promise<void> {
  const { id, account_id, version, created_at, next_sequence, backlog, deleted_at, ...changed } = row;
  await changeOne(
    db
      .updateTable('project')
      .set({ ...changed, version: version + 1 })
      .where('id', '=', id)
      .where('version', '=', version),
  );
}

export async function deleteProject(db: Db, row: ProjectRow): Promise<void> {
  await changeOne(db.deleteFrom('project').where('id', '=', row.id).where('version', '=', row.version));
}

const shownFields = ['name', 'health_state', 'health_since', 'health_reason'] as const;
type ShownEnvironment = Pick<Selectable<Tables['environment']>, (typeof shownFields)[number]>;

const selectShown = prepared((db) =>
  db
    .selectFrom('environment')
    .select(shownFields)
    .where('project_id', '=', '')
    .where('deleted_at', 'is', null)
    .orderBy('name'),
);

/** What a project shows of its environments. */
export const listShownEnvironments = (db: Db, projectId: string): Promise<ShownEnvironment[]> =>
  selectShown(db, projectId);

const selectShownOf = prepared((db) =>
  db
    .selectFrom('environment')
    .select(['project_id', ...shownFields])
    .where('project_id', 'in', jsonTexts(dialectOf(db)))
    .where('deleted_at', 'is', null)
    .orderBy('name'),
);

export async function listShownEnvironmentsOf(db: Db, projectIds: string[]): Promise<Map<string, ShownEnvironment[]>> {
  const shown = new Map<string, ShownEnvironment[]>(projectIds.map((id) => [id, []]));
  const rows = await selectShownOf(db, JSON.stringify(projectIds));
  for (const row of rows) shown.get(row.project_id)!.push(row);
  return shown;
}

export const presentHealth = ({ health_state, health_since, health_reason }: Omit<ShownEnvironment, 'name'>) => ({
  state: health_state,
  since: isoTime(health_since),
  reason: health_reason,
});

const rank = ({ health_state }: ShownEnvironment): number => healthStates.indexOf(health_state);
const isWorse = (one: ShownEnvironment, other: ShownEnvironment): boolean =>
  rank(one) < rank(other) || (rank(one) === rank(other) && one.health_since < other.health_since);

/** That of the environment that is worst off, and of several such the one that is so for longest. */
function worstHealth({ created_at }: ProjectRow, environments: ShownEnvironment[]): Project['health'] {
  if (environments.length === 0) return { state: 'idle', since: isoTime(created_at), reason: null, environment: null };
  const worst = environments.reduce((worst, other) => (isWorse(other, worst) ? other : worst));
  return { ...presentHealth(worst), environment: worst.name };
}

export function presentProject(row: ProjectRow, environments: ShownEnvironment[]): Project {
  return {
    id: row.id,
    name: row.name,
    slug: row.slug,
    description: row.description,
    labels: JSON.parse(row.labels),
    environments: environments.map(({ name }) => name),
    health: worstHealth(row, environments),
    created_at: isoTime(row.created_at),
    updated_at: isoTime(row.updated_at),
  };
}
