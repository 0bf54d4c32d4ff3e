import type { Migration } from '../dialect.ts';

/** Logins of registries, each of one account. */
export const registries: Migration = {
  name: 'registries',
  async up(db, { text, int }) {
    await db.schema
      .createTable('registry')
      .addColumn('id', text, (c) => c.primaryKey())
      .addColumn('account_id', text, (c) => c.notNull().references('account.id'))
      .addColumn('host', text, (c) => c.notNull())
      .addColumn('username', text, (c) => c.notNull())
      .addColumn('password_sealed', text, (c) => c.notNull())
      .addColumn('bound', int, (c) => c.notNull())
      .addColumn('created_at', int, (c) => c.notNull())
      .addColumn('version', int, (c) => c.notNull())
      .execute();
    await db.schema.createIndex('registry_by_account').on('registry').columns(['account_id', 'id']).execute();
    await db.schema
      .createTable('registry_project')
      .addColumn('registry_id', text, (c) => c.notNull().references('registry.id').onDelete('cascade'))
      .addColumn('project_id', text, (c) => c.notNull())
      .addPrimaryKeyConstraint('registry_project_pk', ['registry_id', 'project_id'])
      .execute();
  },
};
