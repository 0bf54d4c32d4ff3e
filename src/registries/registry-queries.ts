import type { Selectable } from 'kysely';
import { notFound } from '../contract/errors.ts';
import type { Registry } from '../contract/registries.ts';
import type { Caller } from '../contract/scopes.ts';
import type { Db } from '../db/database.ts';
import { changeOne } from '../db/guarded.ts';
import { newestFirst, type Page } from '../db/keyset-page.ts';
import type { Tables } from '../db/tables.ts';
import { isoTime } from '../lib/iso-time.ts';

type StoredRegistry = Selectable<Tables['registry']>;
export type RegistryRow = StoredRegistry & { project_ids: string[] | null };

/** The caller sees those of its account. If it is bound to projects, it sees only those bound to no other ones. */
function visible(db: Db, { accountId, projectIds }: Caller) {
  const query = db.selectFrom('registry').selectAll().where('account_id', '=', accountId);
  if (projectIds === null) return query;
  return query.where('bound', '=', 1).where((e) =>
    e.not(
      e.exists(
        e
          .selectFrom('registry_project')
          .select('registry_id')
          .whereRef('registry_project.registry_id', '=', 'registry.id')
          .where('registry_project.project_id', 'not in', projectIds.length > 0 ? projectIds : ['']),
      ),
    ),
  );
}

async function withProjects(db: Db, rows: StoredRegistry[]): Promise<RegistryRow[]> {
  const bound = rows.filter((row) => row.bound).map(({ id }) => id);
  const projects =
    bound.length === 0
      ? []
      : await db
          .selectFrom('registry_project')
          .selectAll()
          .where('registry_id', 'in', bound)
          .orderBy('project_id')
          .execute();
  const byRegistry = Map.groupBy(projects, ({ registry_id }) => registry_id);
  return rows.map((row) => ({
    ...row,
    project_ids: row.bound ? (byRegistry.get(row.id) ?? []).map(({ project_id }) => project_id) : null,
  }));
}

export async function listRegistries(db: Db, caller: Caller, page: Page): Promise<RegistryRow[]> {
  return withProjects(db, await newestFirst(visible(db, caller), page).execute());
}

export async function requireRegistry(db: Db, caller: Caller, id: string): Promise<RegistryRow> {
  const row = await visible(db, caller).where('id', '=', id).executeTakeFirst();
  if (!row) throw notFound('reg', id);
  return (await withProjects(db, [row]))[0]!;
}

/** Those of an account for one host, the newest first. */
export async function listLogins(db: Db, accountId: string, host: string): Promise<RegistryRow[]> {
  const rows = await db
    .selectFrom('registry')
    .selectAll()
    .where('account_id', '=', accountId)
    .where('host', '=', host)
    .orderBy('id', 'desc')
    .execute();
  return withProjects(db, rows);
}

export async function countRegistries(db: Db, accountId: string): Promise<number> {
  const row = await db
    .selectFrom('registry')
    .select((e) => e.fn.countAll<number>().as('count'))
    .where('account_id', '=', accountId)
    .executeTakeFirstOrThrow();
  return Number(row.count);
}

export async function insertRegistry(tx: Db, { project_ids, ...registry }: RegistryRow): Promise<void> {
  await tx.insertInto('registry').values(registry).execute();
  if (project_ids === null) return;
  await tx
    .insertInto('registry_project')
    .values(project_ids.map((project_id) => ({ registry_id: registry.id, project_id })))
    .execute();
}

export async function deleteRegistry(tx: Db, { id, version }: StoredRegistry): Promise<void> {
  await changeOne(tx.deleteFrom('registry').where('id', '=', id).where('version', '=', version));
}

export const presentRegistry = (row: RegistryRow): Registry => ({
  id: row.id,
  host: row.host,
  username: row.username,
  project_ids: row.project_ids,
  created_at: isoTime(row.created_at),
});
