// An event and its deliveries are written in the transaction of the change they report, with the bytes that will be
// delivered. The commit then wakes the dispatcher and the live streams.
import { type Db, dialectOf } from '../db/database.ts';
import type { Clock } from '../lib/clock.ts';
import type { IdSource } from '../lib/ids.ts';
import { isoTime } from '../lib/iso-time.ts';
import { publish } from '../signals/signals.ts';
import type { NewDelivery } from './deliveries.ts';
import * as postgres from './outbox-postgres.ts';
import * as sqlite from './outbox-sqlite.ts';
import type { EventSubject } from './subscribers.ts';

interface NewEvent extends EventSubject {
  /** The record as the API shows it. */
  data: object;
}

const dialects = { sqlite, postgres };

export async function insertEvent(
  tx: Db,
  { ids, clock }: { ids: IdSource; clock: Clock },
  { data, ...subject }: NewEvent,
): Promise<void> {
  const { type, accountId, projectId } = subject;
  const { takeSequence, writeEvent } = dialects[dialectOf(tx)];
  // The row lock this takes keeps the events of one project in sequence, without gaps.
  const { sequence, subscribers } = await takeSequence(tx, subject);
  const id = ids('evt');
  const nowMs = clock.now();
  const body = JSON.stringify({ id, type, created_at: isoTime(nowMs), project_id: projectId, sequence, data });
  const event = { id, account_id: accountId, project_id: projectId, type, sequence, body, created_at: nowMs };
  const deliveries: NewDelivery[] = [];
  for (const { id: webhook_id, ordering } of subscribers) {
    const position = ordering === 'strict' ? await takePosition(tx, webhook_id) : 0;
    deliveries.push({ id: ids('dlv'), webhook_id, event_id: id, type, position, created_at: nowMs });
  }
  await writeEvent(tx, event, deliveries);
  publish(tx, 'events', null);
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
