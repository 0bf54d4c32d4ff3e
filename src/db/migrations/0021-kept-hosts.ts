import type { Migration } from '../dialect.ts';

/** Addresses of environments that were deleted: for a while no other account gets them. */
export const keptHosts: Migration = {
  name: 'kept hosts',
  async up(db, { text, int }) {
    await db.schema
      .createTable('kept_host')
      .addColumn('host', text, (c) => c.primaryKey())
      .addColumn('account_id', text, (c) => c.notNull())
      .addColumn('until', int, (c) => c.notNull())
      .execute();
  },
};
