// Where an event is in the history of its account. Positions rise in the order in which events become visible, whatever
// the clock says, so a follower that has seen one event can be given all that come after it.
//
// SQLite has one writer: an event gets the next number of its account as it is inserted. On PostgreSQL transactions
// commit in any order, and a common counter would make them wait for each other. There a position is the number of the
// transaction plus a base, and a reader stops at the oldest transaction that is still open. A database that was
// restored on another server counts its transactions from another number: at the start the base is raised above
// everything stored.
import { sql } from 'kysely';
import type { Db } from '../db/database.ts';
import type { DialectName } from '../db/dialect.ts';
import type { EventFilter, EventRow } from './event-queries.ts';

export interface Position {
  position: number;
  /** Of the event there; events of one transaction are in the order of their ids. */
  id: string;
}

export const beginning: Position = { position: -1, id: '' };
const behindAllIds = '~';

const baseName = 'event_base';
const base = `coalesce((select value::bigint from meta where name = '${baseName}'), 0)`;
/** The position of what this transaction writes. */
export const ownPositionInPostgres = `${base} + pg_current_xact_id()::text::bigint`;

const oldestOpen = sql<number>`pg_snapshot_xmin(pg_current_snapshot())::text::bigint`;
/** All transactions below this position have ended: what they wrote is visible, and they will write nothing more. */
const settledBelow = sql<number>`${sql.raw(base)} + ${oldestOpen}`;

/** Gives whether the base was raised. To be called before the first event is written. */
export async function continuePositions(db: Db, dialect: DialectName): Promise<boolean> {
  if (dialect === 'sqlite' || !(await isBehind(db))) return false;
  return db.transaction().execute(async (tx) => {
    await sql`select pg_advisory_xact_lock(7310392)`.execute(tx);
    if (!(await isBehind(tx))) return false;
    await sql`insert into meta (name, value) select ${baseName}, (${highest} + 1 - ${oldestOpen})::text
      on conflict (name) do update set value = excluded.value`.execute(tx);
    return true;
  });
}

/** The index of each account ends with its highest position. */
const highest = sql<number>`(select coalesce(max(last.position), 0) from account
  cross join lateral (select max(event.position) as position from event where event.account_id = account.id) last)`;

async function isBehind(db: Db): Promise<boolean> {
  const { rows } = await sql<{ behind: boolean }>`select ${highest} >= ${settledBelow} as behind`.execute(db);
  return rows[0]!.behind;
}

export async function findLatestPosition(db: Db, dialect: DialectName, accountId: string): Promise<Position> {
  if (dialect === 'postgres') {
    const { rows } = await sql<{ position: number }>`select ${settledBelow} - 1 as position`.execute(db);
    return { position: rows[0]!.position, id: behindAllIds };
  }
  const row = await db
    .selectFrom('event')
    .select((e) => e.fn.max('position').as('position'))
    .where('account_id', '=', accountId)
    .executeTakeFirst();
  return { position: Number(row?.position ?? 0), id: behindAllIds };
}

/** Events that are committed behind a position: someone who follows from now on has no use for them. */
export async function listIdsBehind(db: Db, accountId: string, { position }: Position): Promise<string[]> {
  const rows = await db
    .selectFrom('event')
    .select('id')
    .where('account_id', '=', accountId)
    .where('position', '>', position)
    .limit(10_000)
    .execute();
  return rows.map(({ id }) => id);
}

/** null: this database has no such event of the account. */
export async function findPositionOf(db: Db, accountId: string, id: string): Promise<Position | null> {
  const query = db.selectFrom('event').select(['id', 'position']).where('id', '=', id);
  return (await query.where('account_id', '=', accountId).executeTakeFirst()) ?? null;
}

/**
 * Like `settledBelow`, but counts only the transactions of this database: one of a neighbour on the same server may be
 * open for hours, and writes no events of ours. It costs more, and what it allows may be read by a later statement
 * only. null: other roles work on this database, and which transactions they have open cannot be seen.
 */
export async function findOwnHorizon(db: Db): Promise<number | null> {
  const wrap = sql`4294967296`;
  const { rows } = await sql<{ below: number; hidden: boolean }>`
    select ${sql.raw(base)} + least(
        pg_snapshot_xmax(pg_current_snapshot())::text::bigint,
        min(${oldestOpen} + mod(backend_xid::text::bigint - mod(${oldestOpen}, ${wrap}) + ${wrap}, ${wrap}))
      ) as below,
      coalesce(bool_or(usename is distinct from current_user), false)
        and not pg_has_role('pg_read_all_stats', 'usage') as hidden
    from pg_stat_activity where datname = current_database() and backend_type = 'client backend'`.execute(db);
  const { below, hidden } = rows[0]!;
  return hidden ? null : below;
}

interface CommittedEvents {
  /** In the order of their positions. */
  rows: EventRow[];
  /** More events exist, but an older transaction is still open and may write events that come before them. */
  held: boolean;
}

/**
 * The events after a position, up to the point before which no more events can appear. `horizon`: known to be settled.
 */
export async function listCommitted(
  db: Db,
  dialect: DialectName,
  filter: EventFilter,
  after: Position,
  limit: number,
  horizon = 0,
): Promise<CommittedEvents> {
  const { position, id } = after;
  let query = db
    .selectFrom('event')
    .selectAll()
    .where('account_id', '=', filter.accountId)
    .where((e) => e.or([e('position', '>', position), e.and([e('position', '=', position), e('id', '>', id)])]))
    // Redundant, but without it the database reads the index from its beginning.
    .where('position', '>=', position);
  if (filter.projectIds !== null) query = query.where('project_id', 'in', [...filter.projectIds, '']);
  if (filter.type !== undefined) query = query.where('type', '=', filter.type);
  const ordered = query.orderBy('position').orderBy('id').limit(limit);
  if (dialect === 'sqlite') return { rows: await ordered.execute(), held: false };
  const found = await ordered.select(settledBelow.as('settled_below')).execute();
  const open = found.findIndex((row) => row.position >= Math.max(row.settled_below, horizon));
  return open === -1 ? { rows: found, held: false } : { rows: found.slice(0, open), held: true };
}
