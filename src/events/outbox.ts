// An event is written in the transaction of the change it tells of, with the bytes that will be delivered.
import type { EventKind } from '../contract/events.ts';
import type { Db } from '../db/database.ts';
import { isoTime } from '../http/route.ts';
import type { Clock } from '../lib/clock.ts';
import type { IdSource } from '../lib/ids.ts';

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
}
