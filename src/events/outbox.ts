// The outbox: an event and its deliveries are written in the transaction of the change they report, with the bytes that
// will be delivered. The commit then wakes the dispatcher and the live streams.
//
// A transaction inserts a bounded number of deliveries. Where more would be due, it leaves the event in the backlog, from
// which event-backlog.ts inserts them in slices. What a project has in the backlog comes before its later events.
//
// Each database has its own statements. On SQLite a statement costs little, so each step is one of its own. On
// PostgreSQL a round trip costs more than the work it asks for, so an event takes two of them.
import { CompiledQuery, type Insertable } from 'kysely';
import type { EventKind } from '../contract/events.ts';
import type { Ordering } from '../contract/webhooks.ts';
import { type Db, dialectOf } from '../db/database.ts';
import { keepPlan, prepared } from '../db/prepared.ts';
import type { Tables } from '../db/tables.ts';
import { scopeOf } from '../db/transactions.ts';
import { type Clock, deadlineOf } from '../lib/clock.ts';
import type { IdSource } from '../lib/ids.ts';
import { isoTime } from '../lib/iso-time.ts';
import { takeNotification } from '../signals/process-signals.ts';
import { publish } from '../signals/signals.ts';
import { ownPositionInPostgres } from './event-positions.ts';
import { insertDeliveries, insertDeliveriesInPostgres, type NewDelivery } from './new-deliveries.ts';

/** What decides who gets an event. */
interface EventSubject {
  accountId: string;
  projectId: string;
  type: EventKind;
}

export interface Subscriber {
  id: string;
  ordering: Ordering;
}

/** An event's number in its project, and the webhooks that get the event. */
interface SequencedSubscribers {
  sequence: number;
  /** Earlier events of the project wait for their deliveries: so does this one, and its subscribers are not listed. */
  isBehind: boolean;
  subscribers: Subscriber[];
  /**
   * In the order of their ids: the webhooks with a strict order that may get events of the project, of whatever kind.
   * A transaction locks all of them with its first event, so that no two transactions lock some of them in different
   * orders. Empty on SQLite, which has one writer.
   */
  strict: string[];
}

interface NewEvent extends EventSubject {
  /** The record as the API shows it. */
  data: object;
}

const dialects = {
  sqlite: { takeSequence: takeSequenceInSqlite, writeEvent: writeEventInSqlite },
  postgres: { takeSequence: takeSequenceInPostgres, writeEvent: writeEventInPostgres },
};

export async function insertEvent(
  tx: Db,
  { ids, clock }: { ids: IdSource; clock: Clock },
  { data, ...subject }: NewEvent,
): Promise<void> {
  const { type, accountId, projectId } = subject;
  const { takeSequence, writeEvent } = dialects[dialectOf(tx)];
  // The row lock this takes keeps the events of one project in sequence, without gaps.
  const { sequence, isBehind, subscribers, strict } = await takeSequence(tx, subject);
  const isLater = isBehind || !takeRoom(tx, subscribers.length);
  // One is locked by taking its position.
  if (!isLater && strict.length > 1) await lockWebhooks(tx, strict);
  const id = ids('evt');
  const nowMs = clock.now();
  const dueAt = deadlineOf(clock).now();
  const body = JSON.stringify({ id, type, created_at: isoTime(nowMs), project_id: projectId, sequence, data });
  const event = { id, account_id: accountId, project_id: projectId, type, sequence, body, created_at: nowMs };
  const positions = isLater ? noPositions : await takePositions(tx, subscribers);
  const deliveries: NewDelivery[] = (isLater ? [] : subscribers).map(({ id: webhook_id }) => ({
    id: ids('dlv'),
    webhook_id,
    event_id: id,
    type,
    position: positions.get(webhook_id) ?? 0,
    created_at: nowMs,
    due_at: dueAt,
  }));
  await writeEvent(tx, event, deliveries);
  if (isLater) await insertBacklog(tx, subject, sequence, id);
  publish(tx, 'events', null);
}

/** How many deliveries one transaction inserts, over all its events. */
const deliveriesPerTransaction = 100;
const insertedIn = new WeakMap<object, number>();

/** Whether the transaction may insert so many more. */
function takeRoom(tx: Db, count: number): boolean {
  const scope = scopeOf(tx) ?? tx;
  const inserted = (insertedIn.get(scope) ?? 0) + count;
  if (inserted > deliveriesPerTransaction) return false;
  insertedIn.set(scope, inserted);
  return true;
}

/** A webhook that is created later gets none of these events. */
async function insertBacklog(tx: Db, { accountId, projectId, type }: EventSubject, sequence: number, eventId: string) {
  const { last } = await tx
    .selectFrom('webhook')
    .select((e) => e.fn.max('id').as('last'))
    .where('account_id', '=', accountId)
    .executeTakeFirstOrThrow();
  await tx
    .insertInto('event_backlog')
    .values({
      account_id: accountId,
      project_id: projectId,
      sequence,
      event_id: eventId,
      type,
      after_webhook: '',
      last_webhook: last ?? '',
    })
    .execute();
  await tx
    .updateTable('project')
    .set((e) => ({ backlog: e('backlog', '+', 1) }))
    .where('id', '=', projectId)
    .execute();
}

const noPositions: ReadonlyMap<string, number> = new Map();

export async function lockWebhooks(tx: Db, ids: string[]): Promise<void> {
  await tx.selectFrom('webhook').select('id').where('id', 'in', ids).orderBy('id').forNoKeyUpdate().execute();
}

/** Locks the webhooks until the commit: their deliveries become visible in the order of their positions. */
export async function takePositions(tx: Db, subscribers: Subscriber[]): Promise<Map<string, number>> {
  const strict = subscribers.filter(({ ordering }) => ordering === 'strict').map(({ id }) => id);
  if (strict.length === 0) return new Map();
  const rows = await tx
    .updateTable('webhook')
    .set((e) => ({ next_position: e('next_position', '+', 1) }))
    .where('id', 'in', strict)
    .returning((e) => ['id', e('next_position', '-', 1).as('position')])
    .execute();
  return new Map(rows.map(({ id, position }) => [id, Number(position)]));
}

const selectCandidates = prepared((db) =>
  db
    .selectFrom('webhook')
    .select(['id', 'events', 'project_id', 'ordering'])
    .where('account_id', '=', '')
    .where('state', 'in', ['enabled', 'paused'])
    .orderBy('id'),
);

/** The webhooks of the event's account, for all projects or for the event's, that subscribed to its kind. */
async function listSubscribers(tx: Db, { accountId, projectId, type }: EventSubject): Promise<Subscriber[]> {
  const candidates = await selectCandidates(tx, accountId, 'enabled', 'paused');
  return candidates.filter(
    ({ project_id, events }) => (project_id === null || project_id === projectId) && includesKind(events, type),
  );
}

/** `events` is the JSON of a webhook row. */
export const includesKind = (events: string, type: EventKind): boolean =>
  events.includes(`"${type}"`) || events.includes('"*"');

/**
 * The conditions of `listSubscribers` on a webhook `w` in SQL: $1 project, $2 account, $3 the kind in double quotes.
 */
const mayGetInPostgres = `w.account_id = $2 and w.state in ('enabled', 'paused')
  and (w.project_id is null or w.project_id = $1)`;
const includesKindInPostgres = `(strpos(w.events, $3) > 0 or strpos(w.events, '"*"') > 0)`;

async function takeSequenceInSqlite(tx: Db, subject: EventSubject): Promise<SequencedSubscribers> {
  const { sequence, backlog } = await tx
    .updateTable('project')
    .set((e) => ({ next_sequence: e('next_sequence', '+', 1) }))
    .where('id', '=', subject.projectId)
    .returning((e) => ['backlog', e('next_sequence', '-', 1).as('sequence')])
    .executeTakeFirstOrThrow();
  const isBehind = backlog > 0;
  const subscribers = isBehind ? [] : await listSubscribers(tx, subject);
  return { sequence: Number(sequence), isBehind, subscribers, strict: [] };
}

async function writeEventInSqlite(
  tx: Db,
  event: Insertable<Tables['event']>,
  deliveries: NewDelivery[],
): Promise<void> {
  await tx
    .insertInto('event')
    .values((e) => ({
      ...event,
      position: e(
        e.fn.coalesce(
          e
            .selectFrom('event')
            .select((last) => last.fn.max('position').as('position'))
            .where('account_id', '=', event.account_id),
          e.lit(0),
        ),
        '+',
        1,
      ),
    }))
    .execute();
  await insertDeliveries(tx, deliveries);
}

const taking = keepPlan(`
  with taken as (
    update project set next_sequence = next_sequence + 1 where id = $1
      returning next_sequence - 1 as sequence, backlog
  )
  select taken.sequence, taken.backlog, w.id, w.ordering, ${includesKindInPostgres} as subscribes
  from taken left join webhook w on taken.backlog = 0 and ${mayGetInPostgres} and (w.ordering = 'strict' or ${includesKindInPostgres})
  order by w.id`);

interface Candidate {
  sequence: number;
  backlog: number;
  id: string | null;
  ordering: Ordering;
  subscribes: boolean;
}

async function takeSequenceInPostgres(
  tx: Db,
  { accountId, projectId, type }: EventSubject,
): Promise<SequencedSubscribers> {
  const rows = await run<Candidate>(tx, taking, [projectId, accountId, `"${type}"`]);
  if (rows.length === 0) throw new Error(`there is no project ${projectId}`);
  const found = rows.flatMap(({ id, ordering, subscribes }) => (id === null ? [] : [{ id, ordering, subscribes }]));
  return {
    sequence: rows[0]!.sequence,
    isBehind: rows[0]!.backlog > 0,
    subscribers: found.filter(({ subscribes }) => subscribes),
    strict: found.filter(({ ordering }) => ordering === 'strict').map(({ id }) => id),
  };
}

const writing = keepPlan(`
  with written as (
    insert into event (id, account_id, project_id, type, sequence, body, created_at, position)
    values ($1, $2, $3, $4, $5, $6, $7, ${ownPositionInPostgres})
  ),
  delivered as (${insertDeliveriesInPostgres('$8')})
  select pg_notify($9, $10) where $9 is not null`);

/** The statement that writes the event also notifies the other processes, if no other transaction here is notifying. */
async function writeEventInPostgres(
  tx: Db,
  event: Insertable<Tables['event']>,
  deliveries: NewDelivery[],
): Promise<void> {
  const { id, account_id, project_id, type, sequence, body, created_at } = event;
  const notification = takeNotification(tx);
  const values = [id, account_id, project_id, type, sequence, body, created_at, JSON.stringify(deliveries)];
  await run(tx, writing, [...values, notification?.channel ?? null, notification?.payload ?? null]);
}

const run = async <R>(tx: Db, text: string, values: unknown[]): Promise<R[]> =>
  (await tx.executeQuery(CompiledQuery.raw(text, values) as CompiledQuery<R>)).rows;
