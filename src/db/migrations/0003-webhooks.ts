import { sql } from 'kysely';
import type { AnyDb, Columns, Migration } from '../dialect.ts';

export const webhooks: Migration = {
  name: 'webhooks',
  async up(db, columns) {
    await positionEvents(db, columns);
    await createWebhook(db, columns);
    await createDelivery(db, columns);
    await createAttempt(db, columns);
  },
};

/**
 * Ids follow the clock, not the order of commits: while one transaction is open, others with later ids commit. The
 * transaction number shows how far a stream can read without missing an event. SQLite has one writer and needs none.
 */
async function positionEvents(db: AnyDb, { int, transactionNumber }: Columns): Promise<void> {
  await db.schema
    .alterTable('event')
    .addColumn('tx', int, (c) => c.notNull().defaultTo(0))
    .execute();
  if (transactionNumber) await sql`alter table event alter column tx set default ${transactionNumber}`.execute(db);
  await db.schema.createIndex('event_by_commit').on('event').columns(['account_id', 'tx', 'id']).execute();
  await db.schema.createIndex('event_by_type').on('event').columns(['account_id', 'type', 'id']).execute();
  await db.schema.createIndex('event_by_project').on('event').columns(['project_id', 'type', 'id']).execute();
}

async function createWebhook(db: AnyDb, { text, int }: Columns): Promise<void> {
  await db.schema
    .createTable('webhook')
    .addColumn('id', text, (c) => c.primaryKey())
    .addColumn('account_id', text, (c) => c.notNull())
    .addColumn('project_id', text)
    .addColumn('url', text, (c) => c.notNull())
    .addColumn('events', text, (c) => c.notNull())
    .addColumn('description', text)
    .addColumn('ordering', text, (c) => c.notNull())
    .addColumn('state', text, (c) => c.notNull())
    .addColumn('disabled_reason', text)
    .addColumn('secret_sealed', text, (c) => c.notNull())
    .addColumn('old_secret_sealed', text)
    .addColumn('old_secret_until', int)
    .addColumn('next_position', int, (c) => c.notNull())
    .addColumn('failures', int, (c) => c.notNull())
    .addColumn('failing_since', int)
    .addColumn('probe_at', int)
    .addColumn('created_at', int, (c) => c.notNull())
    .addColumn('updated_at', int, (c) => c.notNull())
    .addColumn('version', int, (c) => c.notNull())
    .execute();
  await db.schema.createIndex('webhook_by_account').on('webhook').columns(['account_id', 'id']).execute();
}

async function createDelivery(db: AnyDb, { text, int }: Columns): Promise<void> {
  await db.schema
    .createTable('delivery')
    .addColumn('id', text, (c) => c.primaryKey())
    .addColumn('webhook_id', text, (c) => c.notNull())
    .addColumn('event_id', text, (c) => c.notNull())
    .addColumn('type', text, (c) => c.notNull())
    .addColumn('test_body', text)
    .addColumn('state', text, (c) => c.notNull())
    .addColumn('position', int, (c) => c.notNull())
    .addColumn('due_at', int, (c) => c.notNull())
    .addColumn('lease', text)
    .addColumn('attempts', int, (c) => c.notNull())
    .addColumn('tried', int, (c) => c.notNull())
    .addColumn('created_at', int, (c) => c.notNull())
    .addColumn('finished_at', int)
    .addUniqueConstraint('delivery_once', ['webhook_id', 'event_id'])
    .execute();
  await db.schema.createIndex('delivery_by_state').on('delivery').columns(['webhook_id', 'state', 'id']).execute();
  await sql`create index delivery_due on delivery (webhook_id, due_at, id) where state = 'pending'`.execute(db);
  await sql`create index delivery_turn on delivery (webhook_id, position, id) where state = 'pending'`.execute(db);
}

async function createAttempt(db: AnyDb, { text, int }: Columns): Promise<void> {
  await db.schema
    .createTable('attempt')
    .addColumn('delivery_id', text, (c) => c.notNull())
    .addColumn('number', int, (c) => c.notNull())
    .addColumn('at', int, (c) => c.notNull())
    .addColumn('duration_ms', int, (c) => c.notNull())
    .addColumn('status', int)
    .addColumn('error', text)
    .addColumn('answer', text)
    .addPrimaryKeyConstraint('attempt_pk', ['delivery_id', 'number'])
    .execute();
}
