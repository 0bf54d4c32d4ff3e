import { sql } from 'kysely';
import type { Migration } from '../dialect.ts';

/** Sessions of the console, what an audited request changed, and what lists over a whole account read. */
export const consoleSessions: Migration = {
  name: 'console',
  async up(db, { text, int }) {
    await db.schema
      .createTable('console_session')
      .addColumn('id', text, (c) => c.primaryKey())
      .addColumn('account_id', text, (c) => c.notNull())
      .addColumn('token_id', text, (c) => c.notNull().references('token.id').onDelete('cascade'))
      .addColumn('cookie_hash', text, (c) => c.notNull().unique())
      .addColumn('address', text, (c) => c.notNull())
      .addColumn('user_agent', text)
      .addColumn('created_at', int, (c) => c.notNull())
      .addColumn('last_used_at', int, (c) => c.notNull())
      .addColumn('expires_at', int, (c) => c.notNull())
      .addColumn('ended_at', int)
      .execute();
    await db.schema
      .createIndex('console_session_by_account')
      .on('console_session')
      .columns(['account_id', 'id'])
      .execute();
    await db.schema.createIndex('console_session_by_token').on('console_session').column('token_id').execute();
    await db.schema.alterTable('audit').addColumn('changes', text).execute();
    await db.schema.createIndex('deployment_by_account').on('deployment').columns(['account_id', 'id']).execute();
    await db.schema.createIndex('alert_by_account').on('alert').columns(['account_id', 'id']).execute();
    await sql`create index alert_firing_by_account on alert (account_id, project_id) where resolved_at is null`.execute(
      db,
    );
    await db.schema.createIndex('domain_by_account').on('domain').columns(['account_id', 'id']).execute();
  },
};
