import { type Selectable, sql } from 'kysely';
import type { Caller } from '../contract/caller.ts';
import { type AnyEvent, type EventKind, eventKinds } from '../contract/events.ts';
import type { Db } from '../db/database.ts';
import type { DialectName } from '../db/migrations/types.ts';
import { newestFirst, type Page } from '../db/page.ts';
import type { Tables } from '../db/tables.ts';

type EventRow = Selectable<Tables['event']>;

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
    return newestFirst(query, page).execute();
  };
  if (projectIds === null) return pageOf({ type });
  const kinds = type === undefined ? eventKinds : [type];
  const pages: EventRow[] = [];
  for (const project_id of projectIds)
    for (const kind of kinds) pages.push(...(await pageOf({ project_id, type: kind })));
  return pages.sort((a, b) => (a.id < b.id ? 1 : -1)).slice(0, page.limit + 1);
}

export async function findEvent(db: Db, caller: Caller, id: string): Promise<EventRow | undefined> {
  let query = db.selectFrom('event').selectAll().where('id', '=', id).where('account_id', '=', caller.accountId);
  if (caller.projectIds !== null) query = query.where('project_id', 'in', [...caller.projectIds, '']);
  return query.executeTakeFirst();
}

/** A position in commit order. */
export interface Position {
  tx: number;
  id: string;
}

const last = '~';

/** All transactions below this number have ended: what they wrote is visible, and they will write nothing more. */
const settled = sql<number>`pg_snapshot_xmin(pg_current_snapshot())::text::bigint`;
/** No transaction is open for this long. Needed because transaction numbers from before a restore mean nothing. */
const surelySettledMs = 60_000;

export async function findLatestPosition(db: Db, dialect: DialectName, accountId: string): Promise<Position> {
  if (dialect === 'postgres') {
    const { rows } = await sql<{ tx: number }>`select ${settled} - 1 as tx`.execute(db);
    return { tx: Number(rows[0]!.tx), id: last };
  }
  const row = await db
    .selectFrom('event')
    .select('id')
    .where('account_id', '=', accountId)
    .orderBy('id', 'desc')
    .limit(1)
    .executeTakeFirst();
  return { tx: 0, id: row?.id ?? '' };
}

/** The position right after an event; if the event is no longer stored, right before the next one. */
export async function findPositionAfter(
  db: Db,
  dialect: DialectName,
  accountId: string,
  id: string,
): Promise<Position> {
  if (dialect === 'sqlite') return { tx: 0, id };
  const row = await db
    .selectFrom('event')
    .select(['id', 'tx'])
    .where('account_id', '=', accountId)
    .where('id', '>=', id)
    .orderBy('id')
    .limit(1)
    .executeTakeFirst();
  if (!row) return findLatestPosition(db, dialect, accountId);
  return row.id === id ? row : { tx: row.tx - 1, id: last };
}

interface CommittedEvents {
  /** In commit order. */
  rows: EventRow[];
  /** More events exist, but an older transaction is still open and may write events that come before them. */
  held: boolean;
}

/** The events committed after a position, up to the point before which no more events can appear. */
export async function listCommitted(
  db: Db,
  dialect: DialectName,
  filter: EventFilter,
  after: Position,
  nowMs: number,
  limit: number,
): Promise<CommittedEvents> {
  let query = db
    .selectFrom('event')
    .selectAll()
    .where('account_id', '=', filter.accountId)
    .where((e) => e.or([e('tx', '>', after.tx), e.and([e('tx', '=', after.tx), e('id', '>', after.id)])]));
  // Redundant, but without it the database reads the index from its beginning.
  query = query.where('tx', '>=', after.tx);
  if (filter.projectIds !== null) query = query.where('project_id', 'in', [...filter.projectIds, '']);
  if (filter.type !== undefined) query = query.where('type', '=', filter.type);
  const ordered = query.orderBy('tx').orderBy('id').limit(limit);
  if (dialect === 'sqlite') return { rows: await ordered.execute(), held: false };
  const found = await ordered.select(settled.as('settled_below')).execute();
  const isSettled = (row: (typeof found)[number]) =>
    row.tx < row.settled_below || row.created_at < nowMs - surelySettledMs;
  const open = found.findIndex((row) => !isSettled(row));
  return open === -1 ? { rows: found, held: false } : { rows: found.slice(0, open), held: true };
}

export const presentEvent = (row: EventRow): AnyEvent => JSON.parse(row.body);
