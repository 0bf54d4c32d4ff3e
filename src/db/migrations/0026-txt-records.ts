import type { Migration } from '../dialect.ts';

/** What DNS has in place of the TXT record that would prove a domain, as a JSON array of strings. */
export const txtRecords: Migration = {
  name: 'txt records',
  async up(db, { text }) {
    await db.schema.alterTable('domain').addColumn('txt_found', text).execute();
  },
};
