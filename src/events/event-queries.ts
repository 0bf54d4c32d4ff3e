// Events in the database: lists, newest first, and single events.
import type { Selectable, SelectQueryBuilder } from 'kysely';
import { type AnyEvent, type EventKind, eventKinds } from '../contract/events.ts';
import type { Caller } from '../contract/scopes.ts';
import type { Db } from '../db/database.ts';
import type { Page } from '../db/keyset-page.ts';
import type { Tables } from '../db/tables.ts';

export type EventRow = Selectable<Tables['event']>;

export interface EventFilter {
  accountId: string;
  /** null: all projects of the account. */
  projectIds: readonly string[] | null;
  type: EventKind | undefined;
}

export function filterFor(caller: Caller, query: { type?: EventKind; project_id?: string }): EventFilter {
  const projectIds = query.project_id === undefined ? caller.projectIds : [query.project_id];
  return { accountId: caller.accountId, projectIds, type: query.type };
}

/** Newest first. Reads one page per project and kind, each a range of an index, and merges them. */
export async function listEvents(db: Db, filter: EventFilter, page: Page): Promise<EventRow[]> {
  const { accountId, projectIds, type } = filter;
  const pageOf = (narrow: { project_id?: string; type?: EventKind }) => {
    let query = db.selectFrom('event').selectAll().where('account_id', '=', accountId);
    if (narrow.project_id !== undefined) query = query.where('project_id', '=', narrow.project_id);
    if (narrow.type !== undefined) query = query.where('type', '=', narrow.type);
    return latestFirst(query, page).execute();
  };
  if (projectIds === null) return pageOf({ type });
  const kinds = type === undefined ? eventKinds : [type];
  const pages: EventRow[] = [];
  for (const project_id of projectIds)
    for (const kind of kinds) pages.push(...(await pageOf({ project_id, type: kind })));
  return pages.sort((a, b) => b.position - a.position || (a.id < b.id ? 1 : -1)).slice(0, page.limit + 1);
}

/** One row more than the page holds. The page before ended with an event, whose position is looked up. */
function latestFirst<Row>(query: SelectQueryBuilder<Tables, 'event', Row>, { limit, after }: Page) {
  const below =
    after === null
      ? query
      : query.where((e) =>
          e(
            e.refTuple('event.position', 'event.id'),
            '<',
            e
              .selectFrom('event as last')
              .select(['last.position', 'last.id'])
              .where('last.id', '=', after)
              .$asTuple('position', 'id'),
          ),
        );
  return below
    .orderBy('position', 'desc')
    .orderBy('id', 'desc')
    .limit(limit + 1);
}

export async function findEvent(db: Db, caller: Caller, id: string): Promise<EventRow | undefined> {
  let query = db.selectFrom('event').selectAll().where('id', '=', id).where('account_id', '=', caller.accountId);
  if (caller.projectIds !== null) query = query.where('project_id', 'in', [...caller.projectIds, '']);
  return query.executeTakeFirst();
}

export const presentEvent = (row: EventRow): AnyEvent => JSON.parse(row.body);
