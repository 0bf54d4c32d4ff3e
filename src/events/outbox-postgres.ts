// The same with two round trips instead of four.
import { CompiledQuery } from 'kysely';
import type { Ordering } from '../contract/webhooks.ts';
import type { Db } from '../db/database.ts';
import { takeNotification } from '../signals/processes.ts';
import type { NewEvent, Taken, WrittenEvent } from './outbox.ts';

export interface NewDelivery {
  id: string;
  webhook_id: string;
  position: number;
}

const taking = `
  with taken as (
    update project set next_sequence = next_sequence + 1 where id = $1 returning next_sequence - 1 as sequence
  )
  select taken.sequence, w.id, w.ordering from taken left join webhook w
    on w.account_id = $2 and w.state in ('enabled', 'paused') and (w.project_id is null or w.project_id = $1)
      and (strpos(w.events, $3) > 0 or strpos(w.events, '"*"') > 0)
  order by w.id`;

export async function takeSequenceAtOnce(
  tx: Db,
  { accountId, projectId, type }: Pick<NewEvent, 'accountId' | 'projectId' | 'type'>,
): Promise<Taken> {
  const rows = await run<{ sequence: number; id: string | null; ordering: Ordering }>(tx, taking, [
    projectId,
    accountId,
    `"${type}"`,
  ]);
  if (rows.length === 0) throw new Error(`there is no project ${projectId}`);
  const subscribers = rows.flatMap(({ id, ordering }) => (id === null ? [] : [{ id, ordering }]));
  return { sequence: rows[0]!.sequence, subscribers };
}

const writing = `
  with written as (
    insert into event (id, account_id, project_id, type, sequence, body, created_at)
    values ($1, $2, $3, $4, $5, $6, $7)
  ),
  delivered as (
    insert into delivery (id, webhook_id, event_id, type, state, position, due_at, attempts, tried, created_at)
    select r.id, r.webhook_id, $1, $4, 'pending', r.position, $7, 0, 0, $7
    from json_to_recordset($8::json) as r(id text, webhook_id text, position bigint)
  )
  select pg_notify($9, $10) where $9 is not null`;

export async function writeAtOnce(tx: Db, event: WrittenEvent, deliveries: NewDelivery[]): Promise<void> {
  const { id, account_id, project_id, type, sequence, body, created_at } = event;
  const notification = takeNotification(tx);
  const values = [id, account_id, project_id, type, sequence, body, created_at, JSON.stringify(deliveries)];
  await run(tx, writing, [...values, notification?.channel ?? null, notification?.payload ?? null]);
}

const run = async <R>(tx: Db, text: string, values: unknown[]): Promise<R[]> =>
  (await tx.executeQuery(CompiledQuery.raw(text, values) as CompiledQuery<R>)).rows;
