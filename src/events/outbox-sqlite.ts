// The outbox on SQLite: in one process a statement costs little, so each step is a plain one of its own.
import type { Insertable } from 'kysely';
import type { Db } from '../db/database.ts';
import type { Tables } from '../db/tables.ts';
import { insertDeliveries, type NewDelivery } from './deliveries.ts';
import { type EventSubject, listSubscribers, type SequencedSubscribers } from './subscribers.ts';

export async function takeSequenceInSqlite(tx: Db, subject: EventSubject): Promise<SequencedSubscribers> {
  const { sequence } = await tx
    .updateTable('project')
    .set((e) => ({ next_sequence: e('next_sequence', '+', 1) }))
    .where('id', '=', subject.projectId)
    .returning((e) => e('next_sequence', '-', 1).as('sequence'))
    .executeTakeFirstOrThrow();
  return { sequence: Number(sequence), subscribers: await listSubscribers(tx, subject), strict: [] };
}

export async function writeEventInSqlite(
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
