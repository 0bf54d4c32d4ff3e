import { sql } from 'kysely';
import type { Migration } from './types.ts';

/**
 * A lease of its own, in no index: taking a delivery no longer moves it in five of them. On PostgreSQL pages keep room,
 * so that the row as it was taken stands beside the one it replaces.
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
