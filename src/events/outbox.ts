// An event and its deliveries are written in the transaction of the change they tell of, with the bytes that will be
// delivered. Once it is committed, whoever sends and follows is woken.
import type { EventKind } from '../contract/events.ts';
import { announce } from '../db/after-commit.ts';
import type { Db } from '../db/database.ts';
import { isoTime } from '../http/route.ts';
import type { Clock } from '../lib/clock.ts';
import type { IdSource } from '../lib/ids.ts';
import { listSubscribers, type Subscriber } from '../webhooks/queries.ts';

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
  // The row lock this takes keeps the events of one project in sequence, without gaps.
  const { sequence } = await tx
    .updateTable('project')
    .set((e) => ({ next_sequence: e('next_sequence', '+', 1) }))
    .where('id', '=', projectId)
    .returning((e) => e('next_sequence', '-', 1).as('sequence'))
    .executeTakeFirstOrThrow();
  const id = ids('evt');
  const nowMs = clock.now();
  const body = { id, type, created_at: isoTime(nowMs), project_id: projectId, sequence: Number(sequence), data };
  await tx
    .insertInto('event')
    .values({
      id,
      account_id: accountId,
      project_id: projectId,
      type,
      sequence: Number(sequence),
      body: JSON.stringify(body),
      created_at: nowMs,
    })
    .execute();
  const subscribers = await listSubscribers(tx, { accountId, projectId, type });
  if (subscribers.length > 0) await insertDeliveries(tx, ids, subscribers, { id, type, nowMs });
  announce(tx, 'event');
}

async function insertDeliveries(
  tx: Db,
  ids: IdSource,
  subscribers: Subscriber[],
  event: { id: string; type: EventKind; nowMs: number },
): Promise<void> {
  const rows = [];
  for (const { id, ordering } of subscribers) {
    rows.push({
      id: ids('dlv'),
      webhook_id: id,
      event_id: event.id,
      type: event.type,
      test_body: null,
      state: 'pending' as const,
      position: ordering === 'strict' ? await takePosition(tx, id) : 0,
      due_at: event.nowMs,
      lease: null,
      attempts: 0,
      tried: 0,
      created_at: event.nowMs,
      finished_at: null,
    });
  }
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
