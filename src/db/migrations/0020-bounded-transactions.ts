import { sql } from 'kysely';
import type { Migration } from '../dialect.ts';

/**
 * What keeps a transaction small: events whose deliveries are inserted later, and what is deleted but not cleared away
 * yet.
 */
export const boundedTransactions: Migration = {
  name: 'bounded transactions',
  async up(db, { text, int }) {
    await db.schema
      .alterTable('project')
      .addColumn('backlog', int, (c) => c.notNull().defaultTo(0))
      .execute();
    await db.schema.alterTable('project').addColumn('deleted_at', int).execute();
    await db.schema.alterTable('environment').addColumn('deleted_at', int).execute();
    await sql`create index project_deleted on project (deleted_at) where deleted_at is not null`.execute(db);
    await sql`create index environment_deleted on environment (deleted_at) where deleted_at is not null`.execute(db);
    await db.schema
      .createTable('event_backlog')
      .addColumn('account_id', text, (c) => c.notNull())
      .addColumn('project_id', text, (c) => c.notNull())
      .addColumn('sequence', int, (c) => c.notNull())
      .addColumn('event_id', text, (c) => c.notNull())
      .addColumn('type', text, (c) => c.notNull())
      .addColumn('after_webhook', text, (c) => c.notNull())
      .addColumn('last_webhook', text, (c) => c.notNull())
      .addPrimaryKeyConstraint('event_backlog_pk', ['account_id', 'project_id', 'sequence'])
      .execute();
  },
};
