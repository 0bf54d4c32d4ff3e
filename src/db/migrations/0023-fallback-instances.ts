import type { Migration } from '../dialect.ts';

/** Whether an unhealthy instance gets requests while no instance of its environment is healthy. */
export const fallbackInstances: Migration = {
  name: 'fallback instances',
  async up(db, { int }) {
    await db.schema
      .alterTable('instance')
      .addColumn('is_fallback', int, (c) => c.notNull().defaultTo(0))
      .execute();
  },
};
