import { sql } from 'kysely';
import type { Migration } from '../dialect.ts';

/**
 * The end of the lease gets a column of its own that is in no index, so that claiming a delivery updates none of the
 * five indexes. On PostgreSQL, pages keep free space, so that the new version of the row fits on the same page.
 */
export const deliveryLeases: Migration = {
  name: 'delivery leases',
  async up(db, { int, transactionNumber }) {
    await db.schema
      .alterTable('delivery')
      .addColumn('lease_until', int, (c) => c.notNull().defaultTo(0))
      .execute();
    await sql`update delivery set lease_until = due_at where state = 'pending' and lease is not null`.execute(db);
    if (transactionNumber) await sql`alter table delivery set (fillfactor = 45)`.execute(db);
  },
};
