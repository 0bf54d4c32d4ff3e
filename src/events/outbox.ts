// An event and its deliveries are written in the transaction of the change they report, with the bytes that will be
// delivered. The commit then wakes the dispatcher and the live streams.
import { type Db, dialectOf } from '../db/database.ts';
import { type Clock, lastingOf } from '../lib/clock.ts';
import type { IdSource } from '../lib/ids.ts';
import { isoTime } from '../lib/iso-time.ts';
import { publish } from '../signals/signals.ts';
import type { NewDelivery } from './deliveries.ts';
import { takeSequenceInPostgres, writeEventInPostgres } from './outbox-postgres.ts';
import { takeSequenceInSqlite, writeEventInSqlite } from './outbox-sqlite.ts';
import type { EventSubject, Subscriber } from './subscribers.ts';

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
  const { sequence, subscribers, strict } = await takeSequence(tx, subject);
  // One is locked by taking its position.
  if (strict.length > 1) await lockWebhooks(tx, strict);
  const id = ids('evt');
  const nowMs = clock.now();
  const dueAt = lastingOf(clock).now();
  const body = JSON.stringify({ id, type, created_at: isoTime(nowMs), project_id: projectId, sequence, data });
  const event = { id, account_id: accountId, project_id: projectId, type, sequence, body, created_at: nowMs };
  const positions = await takePositions(tx, subscribers);
  const deliveries: NewDelivery[] = subscribers.map(({ id: webhook_id }) => ({
    id: ids('dlv'),
    webhook_id,
    event_id: id,
    type,
    position: positions.get(webhook_id) ?? 0,
    created_at: nowMs,
    due_at: dueAt,
  }));
  await writeEvent(tx, event, deliveries);
  publish(tx, 'events', null);
}

async function lockWebhooks(tx: Db, ids: string[]): Promise<void> {
  await tx.selectFrom('webhook').select('id').where('id', 'in', ids).orderBy('id').forNoKeyUpdate().execute();
}

/** Locks the webhooks until the commit: their deliveries become visible in the order of their positions. */
async function takePositions(tx: Db, subscribers: Subscriber[]): Promise<Map<string, number>> {
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
