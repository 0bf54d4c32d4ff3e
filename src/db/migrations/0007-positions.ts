import { sql } from 'kysely';
import type { AnyDb, Columns, Migration } from '../dialect.ts';

export const positions: Migration = {
  name: 'positions',
  async up(db, columns) {
    await positionEvents(db, columns);
    await fenceLeases(db, columns);
    // What the routers had counted in the current ten seconds when the canary's step began.
    await db.schema.alterTable('deployment').addColumn('step_baseline', columns.text).execute();
  },
};

/**
 * Events are listed and streamed by position. On PostgreSQL that is the number of the transaction, which has been in
 * this column all along. On SQLite rows are numbered in the order in which they were written.
 */
async function positionEvents(db: AnyDb, { transactionNumber }: Columns): Promise<void> {
  await db.schema.alterTable('event').renameColumn('tx', 'position').execute();
  if (!transactionNumber) await sql`update event set position = rowid`.execute(db);
  await db.schema.dropIndex('event_by_type').execute();
  await db.schema.dropIndex('event_by_project').execute();
  await db.schema.createIndex('event_by_type').on('event').columns(['account_id', 'type', 'position', 'id']).execute();
  await db.schema
    .createIndex('event_by_project')
    .on('event')
    .columns(['project_id', 'type', 'position', 'id'])
    .execute();
}

/** The number outlives the row of a lease: it comes from a sequence, so a lease taken later has a higher one. */
async function fenceLeases(db: AnyDb, { int, transactionNumber }: Columns): Promise<void> {
  await db.schema
    .alterTable('environment_lease')
    .addColumn('fence', int, (c) => c.notNull().defaultTo(0))
    .execute();
  if (!transactionNumber) return;
  await sql`create sequence environment_fence`.execute(db);
  await sql`alter table environment_lease alter column fence set default nextval('environment_fence')`.execute(db);
}
