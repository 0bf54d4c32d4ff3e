// Events as any change writes them, without the change.
import type { EventKind } from '../../src/contract/events.ts';
import type { Db } from '../../src/db/database.ts';
import { insertEvent } from '../../src/events/outbox.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { createIds } from '../../src/lib/ids.ts';

const ids = createIds(systemClock);

export async function accountOf(db: Db, projectId: string): Promise<string> {
  const query = db.selectFrom('project').select('account_id').where('id', '=', projectId);
  return (await query.executeTakeFirstOrThrow()).account_id;
}

/** Writes an event in a transaction of the caller. */
export async function emitIn(tx: Db, projectId: string, type: EventKind = 'alert.fired', data: object = {}) {
  const accountId = await accountOf(tx, projectId);
  await insertEvent(tx, { ids, clock: systemClock }, { type, accountId, projectId, data });
}

export const emit = (db: Db, projectId: string, type?: EventKind, data?: object): Promise<void> =>
  db.transaction().execute((tx) => emitIn(tx, projectId, type, data));
