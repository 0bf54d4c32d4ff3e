// The outbox on PostgreSQL: a round trip costs more than the work it asks for, so an event takes two of them.
import { CompiledQuery, type Insertable } from 'kysely';
import type { Ordering } from '../contract/webhooks.ts';
import type { Db } from '../db/database.ts';
import { keepPlan } from '../db/prepared.ts';
import type { Tables } from '../db/tables.ts';
import { takeNotification } from '../signals/processes.ts';
import { insertDeliveriesInPostgres, type NewDelivery } from './deliveries.ts';
import { ownPositionInPostgres } from './positions.ts';
import {
  type EventSubject,
  includesKindInPostgres,
  mayGetInPostgres,
  type SequencedSubscribers,
} from './subscribers.ts';

const taking = keepPlan(`
  with taken as (
    update project set next_sequence = next_sequence + 1 where id = $1 returning next_sequence - 1 as sequence
  )
  select taken.sequence, w.id, w.ordering, ${includesKindInPostgres} as subscribes
  from taken left join webhook w on ${mayGetInPostgres} and (w.ordering = 'strict' or ${includesKindInPostgres})
  order by w.id`);

interface Candidate {
  sequence: number;
  id: string | null;
  ordering: Ordering;
  subscribes: boolean;
}

export async function takeSequenceInPostgres(
  tx: Db,
  { accountId, projectId, type }: EventSubject,
): Promise<SequencedSubscribers> {
  const rows = await run<Candidate>(tx, taking, [projectId, accountId, `"${type}"`]);
  if (rows.length === 0) throw new Error(`there is no project ${projectId}`);
  const found = rows.flatMap(({ id, ordering, subscribes }) => (id === null ? [] : [{ id, ordering, subscribes }]));
  return {
    sequence: rows[0]!.sequence,
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

/** The statement that writes the event also notifies the other processes, where a NOTIFY is free to use. */
export async function writeEventInPostgres(
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
