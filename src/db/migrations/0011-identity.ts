import type { AnyDb, Columns, Migration } from './types.ts';

/** Which token made a token. Those of before name none. */
export const identity: Migration = {
  name: 'identity',
  async up(db, columns) {
    await addTokenParent(db, columns);
  },
};

async function addTokenParent(db: AnyDb, { text }: Columns): Promise<void> {
  await db.schema.alterTable('token').addColumn('parent_id', text).execute();
  await db.schema.createIndex('token_by_parent').on('token').column('parent_id').execute();
}
