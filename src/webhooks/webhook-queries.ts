// Webhooks in the database, and as the API shows them.
import { type Selectable, sql } from 'kysely';
import { notFound } from '../contract/errors.ts';
import type { Caller } from '../contract/scopes.ts';
import type { Webhook } from '../contract/webhooks.ts';
import type { Db } from '../db/database.ts';
import { changeOne } from '../db/guarded.ts';
import type { Page } from '../db/keyset-page.ts';
import { preparedInsert } from '../db/prepared.ts';
import { type Found, searchNewestFirst } from '../db/search.ts';
import type { Tables } from '../db/tables.ts';
import { isoTime, isoTimeOrNull } from '../lib/iso-time.ts';

export type WebhookRow = Selectable<Tables['webhook']>;

/**
 * The webhooks a caller may see: those of its account, or, if its token is bound to projects, those of these projects.
 */
function visible(db: Db, caller: Caller) {
  const query = db
    .selectFrom('webhook')
    .selectAll()
    .where('account_id', '=', caller.accountId)
    .where('state', '!=', 'deleted');
  return caller.projectIds === null ? query : query.where('project_id', 'in', [...caller.projectIds, '']);
}

export async function listWebhooks(
  db: Db,
  caller: Caller,
  search: string | undefined,
  page: Page,
): Promise<Found<WebhookRow>> {
  const project = sql`(select p.name from project p where p.id = webhook.project_id)`;
  const texts = [sql`webhook.url`, sql`webhook.description`, sql`webhook.events`, sql`webhook.state`, project];
  return searchNewestFirst(visible(db, caller), search, texts, page);
}

export async function requireWebhook(db: Db, caller: Caller, id: string): Promise<WebhookRow> {
  const row = await visible(db, caller).where('id', '=', id).executeTakeFirst();
  if (!row) throw notFound('whk', id);
  return row;
}

export const insertWebhook = preparedInsert('webhook');

/** What people change. The health is written by the dispatcher, and the next position by the outbox. */
export async function updateWebhook(
  db: Db,
  { id, version }: WebhookRow,
  changed: Partial<Omit<Tables['webhook'], 'id' | 'account_id' | 'version' | 'next_position'>>,
): Promise<void> {
  await changeOne(
    db
      .updateTable('webhook')
      .set({ ...changed, version: version + 1 })
      .where('id', '=', id)
      .where('version', '=', version)
      .where('state', '!=', 'deleted'),
  );
}

export function presentWebhook(row: WebhookRow): Webhook {
  return {
    id: row.id,
    url: row.url,
    events: JSON.parse(row.events),
    project_id: row.project_id,
    description: row.description,
    ordering: row.ordering,
    state: row.state as Webhook['state'],
    disabled_reason: row.disabled_reason,
    failing_since: isoTimeOrNull(row.failing_since),
    probe_at: isoTimeOrNull(row.probe_at),
    created_at: isoTime(row.created_at),
  };
}
