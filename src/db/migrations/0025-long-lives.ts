import { sql } from 'kysely';
import type { Migration } from '../dialect.ts';

/**
 * For a service that runs for years, and for one that is killed every few seconds: what is live is found without reading
 * what once was, and waiting goes on where another process had to leave it.
 */
export const longLives: Migration = {
  name: 'long lives',
  async up(db, { int }) {
    await db.schema
      .createIndex('revision_by_state')
      .on('revision')
      .columns(['project_id', 'environment', 'state', 'number'])
      .execute();
    await sql`create index revision_current on revision (project_id, environment) where state in ('pending', 'canary', 'active')`.execute(
      db,
    );
    await sql`create index revision_routed on revision (project_id, environment) where traffic_percent > 0`.execute(db);
    await db.schema
      .alterTable('router')
      .addColumn('silent_beat', int, (c) => c.notNull().defaultTo(0))
      .execute();
    await db.schema
      .alterTable('router')
      .addColumn('silent_ms', int, (c) => c.notNull().defaultTo(0))
      .execute();
    await db.schema
      .alterTable('instance_drain')
      .addColumn('unrouted_ms', int, (c) => c.notNull().defaultTo(0))
      .execute();
  },
};
