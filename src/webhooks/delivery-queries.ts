// Deliveries and their attempts in the database, and as the API shows them.
import type { Selectable, SelectQueryBuilder } from 'kysely';
import { type Delivery, type DeliveryDetail, type DeliveryState, deliveryStates } from '../contract/deliveries.ts';
import { notFound } from '../contract/errors.ts';
import { type Db, dialectOf } from '../db/database.ts';
import { changeOne } from '../db/guarded.ts';
import { newestFirst, type Page } from '../db/keyset-page.ts';
import type { Tables } from '../db/tables.ts';
import { idFloor } from '../lib/ids.ts';
import { isoTime, isoTimeOrNull } from '../lib/iso-time.ts';
import type { WebhookRow } from './webhook-queries.ts';

export type DeliveryRow = Selectable<Tables['delivery']>;
type AttemptRow = Selectable<Tables['attempt']>;

const shownAttempts = 100;

export async function listDeliveries(
  db: Db,
  webhookId: string,
  state: DeliveryState | undefined,
  page: Page,
): Promise<DeliveryRow[]> {
  const pageOf = (inState: DeliveryState) => {
    const query = db
      .selectFrom('delivery')
      .selectAll()
      .where('webhook_id', '=', webhookId)
      .where('state', '=', inState);
    return newestFirst(query, page).execute();
  };
  if (state) return pageOf(state);
  // The index is by state: read a page of each state and merge them.
  const pages = await Promise.all(deliveryStates.map(pageOf));
  const rows = new Map(pages.flat().map((row) => [row.id, row]));
  return [...rows.values()].sort((a, b) => (a.id < b.id ? 1 : -1)).slice(0, page.limit + 1);
}

export async function requireDelivery(db: Db, webhookId: string, id: string): Promise<DeliveryRow> {
  const row = await db
    .selectFrom('delivery')
    .selectAll()
    .where('id', '=', id)
    .where('webhook_id', '=', webhookId)
    .executeTakeFirst();
  if (!row) throw notFound('dlv', id);
  return row;
}

export async function listAttempts(db: Db, deliveryId: string): Promise<AttemptRow[]> {
  const rows = await db
    .selectFrom('attempt')
    .selectAll()
    .where('delivery_id', '=', deliveryId)
    .orderBy('number', 'desc')
    .limit(shownAttempts)
    .execute();
  return rows.reverse();
}

/** Due now, with the retry schedule from its start. A delivery that is being sent right now stays as it is. */
export async function markDeliveryDue(db: Db, row: DeliveryRow, nowMs: number): Promise<DeliveryRow> {
  if (row.state === 'pending' && row.lease !== null) return row;
  const changed = {
    state: 'pending' as const,
    due_at: nowMs,
    tried: 0,
    finished_at: null,
    lease: null,
    lease_until: 0,
  };
  await changeOne(
    db
      .updateTable('delivery')
      .set(changed)
      .where('id', '=', row.id)
      .where('state', '=', row.state)
      .where('lease', 'is', null),
  );
  return { ...row, ...changed };
}

/** All that write several deliveries lock them in the order of their ids, so that no two wait for each other. */
export function lockedInOrder<Row>(db: Db, deliveries: SelectQueryBuilder<Tables, 'delivery', Row>) {
  const ordered = deliveries.orderBy('delivery.id');
  return dialectOf(db) === 'postgres' ? ordered.forUpdate() : ordered;
}

/** Makes failed deliveries of events since a time due again, at most `limit` of them. Gives how many. */
export async function markFailedDue(
  db: Db,
  webhookId: string,
  sinceMs: number,
  nowMs: number,
  limit: number,
): Promise<number> {
  const { numUpdatedRows } = await db
    .updateTable('delivery')
    .set({ state: 'pending', due_at: nowMs, tried: 0, finished_at: null, lease: null, lease_until: 0 })
    .where('state', '=', 'failed')
    .where('id', 'in', (e) =>
      lockedInOrder(
        db,
        e
          .selectFrom('delivery')
          .select('id')
          .where('webhook_id', '=', webhookId)
          .where('state', '=', 'failed')
          .where('event_id', '>=', idFloor('evt', sinceMs))
          .where('test_body', 'is', null)
          .limit(limit),
      ),
    )
    .executeTakeFirst();
  return Number(numUpdatedRows);
}

/** Events the webhook subscribed to that never had a delivery to it, oldest first. */
export async function listUndelivered(db: Db, webhook: WebhookRow, sinceMs: number, limit: number) {
  let query = db
    .selectFrom('event')
    .select(['id', 'type'])
    .where('account_id', '=', webhook.account_id)
    .where('id', '>=', idFloor('evt', sinceMs))
    .where((e) =>
      e.not(
        e.exists(
          e
            .selectFrom('delivery')
            .select('delivery.id')
            .where('delivery.webhook_id', '=', webhook.id)
            .whereRef('delivery.event_id', '=', 'event.id'),
        ),
      ),
    );
  if (webhook.project_id !== null) query = query.where('project_id', '=', webhook.project_id);
  const kinds = JSON.parse(webhook.events);
  if (!kinds.includes('*')) query = query.where('type', 'in', kinds);
  return query.orderBy('position').orderBy('id').limit(limit).execute();
}

export function presentDelivery(row: DeliveryRow): Delivery {
  return {
    id: row.id,
    webhook_id: row.webhook_id,
    event_id: row.event_id,
    event_type: row.type,
    state: row.state,
    attempt_count: row.attempts,
    next_attempt_at: row.state === 'pending' ? isoTime(row.due_at) : null,
    created_at: isoTime(row.created_at),
    finished_at: isoTimeOrNull(row.finished_at),
  };
}

export function presentDetail(row: DeliveryRow, attempts: AttemptRow[]): DeliveryDetail {
  return {
    ...presentDelivery(row),
    attempts: attempts.map(({ delivery_id: _, at, ...attempt }) => ({ at: isoTime(at), ...attempt })),
  };
}
