import type { Migration } from '../dialect.ts';

/** How many responses were 4xx, for the analysis of canaries. */
export const clientErrors: Migration = {
  name: 'client-errors',
  async up(db, { int }) {
    await db.schema
      .alterTable('traffic')
      .addColumn('client_errors', int, (c) => c.notNull().defaultTo(0))
      .execute();
  },
};
