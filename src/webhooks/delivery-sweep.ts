// Clears away rows in small batches, so that no other statement waits for long: events and deliveries past their
// retention, the deliveries of deleted webhooks, and, by giving them up, the pending deliveries of disabled ones.
import type { Db } from '../db/database.ts';
import { idFloor } from '../lib/ids.ts';
import { lockedInOrder } from './delivery-queries.ts';

const batch = 500;

/** How far the events have been checked. Some have to stay, and are not checked again for every batch. */
export interface SweptEvents {
  after: string;
}

/** Gives whether there may be more. Ids sort by time, so old rows are at the beginning of each table. */
export async function sweepOld(db: Db, olderThanMs: number, swept: SweptEvents = { after: '' }): Promise<boolean> {
  const old = await db
    .selectFrom('delivery')
    .select('id')
    .where('id', '<', idFloor('dlv', olderThanMs))
    .where('state', '!=', 'pending')
    .orderBy('id')
    .limit(batch)
    .execute();
  await deleteDeliveries(
    db,
    old.map(({ id }) => id),
  );
  const isBehind = old.length === batch;
  // An event comes before its deliveries: of those behind the last one deleted here, most still have theirs.
  const upTo = isBehind ? `evt${old.at(-1)!.id.slice(3)}` : idFloor('evt', olderThanMs);
  const hasMoreEvents = await sweepEvents(db, upTo, swept);
  if (!isBehind && !hasMoreEvents) swept.after = ''; // all were checked: the next time begins anew
  return isBehind || hasMoreEvents;
}

/** Checks one page after another until it has deleted something, or has seen all. Returns whether there may be more. */
async function sweepEvents(db: Db, upTo: string, swept: SweptEvents): Promise<boolean> {
  for (;;) {
    const page = await db
      .selectFrom('event')
      .select('id')
      .where('id', '>', swept.after)
      .where('id', '<', upTo)
      .orderBy('id')
      .limit(batch)
      .execute();
    const ids = page.map(({ id }) => id);
    const deleted = await deleteEvents(db, ids);
    swept.after = ids.at(-1) ?? swept.after;
    if (ids.length < batch) return false;
    if (deleted > 0) return true;
  }
}

/**
 * Deletes those that may go. They are named by their ids, not by their age, so the database reads only these. An event
 * stays while it has a delivery, because one that is still pending needs its body.
 */
async function deleteEvents(db: Db, ids: string[]): Promise<number> {
  if (ids.length === 0) return 0;
  const { numDeletedRows } = await db
    .deleteFrom('event')
    .where('id', 'in', ids)
    // The next event of the account gets a position above this one.
    .where('event.position', '<', ({ selectFrom }) =>
      selectFrom('event as last')
        .select((e) => e.fn.max('last.position').as('position'))
        .whereRef('last.account_id', '=', 'event.account_id'),
    )
    .where(({ not, exists, selectFrom }) =>
      not(
        exists(
          selectFrom('webhook')
            .innerJoin('delivery', 'delivery.webhook_id', 'webhook.id')
            .select('delivery.id')
            .whereRef('webhook.account_id', '=', 'event.account_id')
            .whereRef('delivery.event_id', '=', 'event.id'),
        ),
      ),
    )
    .executeTakeFirst();
  return Number(numDeletedRows);
}

async function deleteDeliveries(db: Db, ids: string[]): Promise<void> {
  if (ids.length === 0) return;
  await db.transaction().execute(async (tx) => {
    await lockedInOrder(tx, tx.selectFrom('delivery').select('id').where('id', 'in', ids)).execute();
    await tx.deleteFrom('attempt').where('delivery_id', 'in', ids).execute();
    await tx.deleteFrom('delivery').where('id', 'in', ids).execute();
  });
}

/** Gives whether there may be more. */
export async function sweepStopped(db: Db, nowMs: number): Promise<boolean> {
  let more = false;
  const stopped = await db
    .selectFrom('webhook')
    .select(['id', 'state'])
    .where('state', 'in', ['deleted', 'disabled'])
    .execute();
  for (const { id, state } of stopped) {
    more = (state === 'deleted' ? await sweepDeleted(db, id) : await giveUpPending(db, id, nowMs)) || more;
  }
  return more;
}

async function sweepDeleted(db: Db, webhookId: string): Promise<boolean> {
  const rows = await db.selectFrom('delivery').select('id').where('webhook_id', '=', webhookId).limit(batch).execute();
  await deleteDeliveries(
    db,
    rows.map(({ id }) => id),
  );
  if (rows.length > 0) return true;
  await db.deleteFrom('webhook').where('id', '=', webhookId).where('state', '=', 'deleted').execute();
  return false;
}

/** Guarded by the state of the webhook, which may have been enabled again meanwhile. */
async function giveUpPending(db: Db, webhookId: string, nowMs: number): Promise<boolean> {
  const { numUpdatedRows } = await db
    .updateTable('delivery')
    .set({ state: 'failed', finished_at: nowMs, lease: null, lease_until: 0 })
    .where('state', '=', 'pending')
    .where('id', 'in', (e) =>
      lockedInOrder(
        db,
        e
          .selectFrom('delivery')
          .select('delivery.id')
          .where('delivery.webhook_id', '=', webhookId)
          .where('delivery.state', '=', 'pending')
          .where(({ exists, selectFrom }) =>
            exists(
              selectFrom('webhook').select('id').where('id', '=', webhookId).where('webhook.state', '=', 'disabled'),
            ),
          )
          .limit(batch),
      ),
    )
    .executeTakeFirst();
  return Number(numUpdatedRows) === batch;
}
