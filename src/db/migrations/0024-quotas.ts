import { sql } from 'kysely';
import type { Migration } from '../dialect.ts';

/** What quotas count: whose a port is, the bytes of variables, each set of which is stored once, and of logs. */
export const quotas: Migration = {
  name: 'quotas',
  async up(db, { text, int }) {
    await db.schema.alterTable('instance_port').addColumn('account_id', text).execute();
    await sql`update instance_port set account_id = (
      select project.account_id from instance join project on project.id = instance.project_id
      where instance.id = instance_port.instance_id)`.execute(db);
    await db.schema.createIndex('instance_port_by_account').on('instance_port').column('account_id').execute();
    await db.schema
      .createTable('variable_set')
      .addColumn('project_id', text, (c) => c.notNull())
      .addColumn('environment', text, (c) => c.notNull())
      .addColumn('id', text, (c) => c.notNull())
      .addColumn('sealed', text, (c) => c.notNull())
      .addColumn('bytes', int, (c) => c.notNull())
      .addPrimaryKeyConstraint('variable_set_pk', ['project_id', 'environment', 'id'])
      .addForeignKeyConstraint(
        'variable_set_environment',
        ['project_id', 'environment'],
        'environment',
        ['project_id', 'name'],
        (c) => c.onDelete('cascade'),
      )
      .execute();
    await db.schema
      .createTable('account_usage')
      .addColumn('account_id', text, (c) => c.notNull().references('account.id').onDelete('cascade'))
      .addColumn('resource', text, (c) => c.notNull())
      .addColumn('used', int, (c) => c.notNull())
      .addPrimaryKeyConstraint('account_usage_pk', ['account_id', 'resource'])
      .execute();
  },
};
