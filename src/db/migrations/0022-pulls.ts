import type { Migration } from '../dialect.ts';

/** Whether a deployment uses an image that the engine has. */
export const pulls: Migration = {
  name: 'pulls',
  async up(db, { text }) {
    await db.schema
      .alterTable('deployment')
      .addColumn('pull', text, (c) => c.notNull().defaultTo('always'))
      .execute();
  },
};
