// An event and its deliveries are written in the transaction of the change they tell of, with the bytes that will be
// delivered. Once it is committed, whoever sends and follows is woken.
import type { EventKind } from '../contract/events.ts';
import { type Db, dialectOf } from '../db/database.ts';
import type { Clock } from '../lib/clock.ts';
import type { IdSource } from '../lib/ids.ts';
import { isoTime } from '../lib/iso-time.ts';
import { publish } from '../signals/signals.ts';
import { listSubscribers, type Subscriber } from '../webhooks/endpoints/queries.ts';
import { type NewDelivery, takeSequenceAtOnce, writeAtOnce } from './outbox-postgres.ts';

export interface NewEvent {
  type: EventKind;
  accountId: string;
  projectId: string;
  /** The record as the API shows it. */
  data: object;
}

export async function insertEvent(
  tx: Db,
  { ids, clock }: { ids: IdSource; clock: Clock },
  { type, accountId, projectId, data }: NewEvent,
): Promise<void> {
  const onPostgres = dialectOf(tx) === 'postgres';
  const { sequence, subscribers } = await (onPostgres ? takeSequenceAtOnce : takeSequence)(tx, {
    accountId,
    projectId,
    type,
  });
  const id = ids('evt');
  const nowMs = clock.now();
  const body = JSON.stringify({ id, type, created_at: isoTime(nowMs), project_id: projectId, sequence, data });
  const event = { id, account_id: accountId, project_id: projectId, type, sequence, body, created_at: nowMs };
  const deliveries: NewDelivery[] = [];
  for (const { id: webhookId, ordering } of subscribers) {
    const position = ordering === 'strict' ? await takePosition(tx, webhookId) : 0;
    deliveries.push({ id: ids('dlv'), webhook_id: webhookId, position });
  }
  await (onPostgres ? writeAtOnce : write)(tx, event, deliveries);
  publish(tx, 'events', null);
}

export interface Taken {
  sequence: number;
  subscribers: Subscriber[];
}

export interface WrittenEvent {
  id: string;
  account_id: string;
  project_id: string;
  type: EventKind;
  sequence: number;
  body: string;
  created_at: number;
}

/** The row lock this takes keeps the events of one project in sequence, without gaps. */
async function takeSequence(tx: Db, event: Pick<NewEvent, 'accountId' | 'projectId' | 'type'>): Promise<Taken> {
  const { sequence } = await tx
    .updateTable('project')
    .set((e) => ({ next_sequence: e('next_sequence', '+', 1) }))
    .where('id', '=', event.projectId)
    .returning((e) => e('next_sequence', '-', 1).as('sequence'))
    .executeTakeFirstOrThrow();
  return { sequence: Number(sequence), subscribers: await listSubscribers(tx, event) };
}

async function write(tx: Db, event: WrittenEvent, deliveries: NewDelivery[]): Promise<void> {
  await tx.insertInto('event').values(event).execute();
  if (deliveries.length === 0) return;
  const rows = deliveries.map((delivery) => ({
    ...delivery,
    event_id: event.id,
    type: event.type,
    test_body: null,
    state: 'pending' as const,
    due_at: event.created_at,
    lease: null,
    lease_until: 0,
    attempts: 0,
    tried: 0,
    created_at: event.created_at,
    finished_at: null,
  }));
  await tx.insertInto('delivery').values(rows).execute();
}

/** Locks the webhook until the commit: its deliveries become visible in the order of their positions. */
async function takePosition(tx: Db, webhookId: string): Promise<number> {
  const { position } = await tx
    .updateTable('webhook')
    .set((e) => ({ next_position: e('next_position', '+', 1) }))
    .where('id', '=', webhookId)
    .returning((e) => e('next_position', '-', 1).as('position'))
    .executeTakeFirstOrThrow();
  return Number(position);
}
