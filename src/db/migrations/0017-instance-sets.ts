import { sql } from 'kysely';
import type { Migration } from '../dialect.ts';

/** The sets that engines run: one revision in one environment, in its region. */
export const instanceSets: Migration = {
  name: 'instance-sets',
  async up(db, { text, int }) {
    await db.schema
      .createTable('instance_set')
      .addColumn('id', text, (c) => c.primaryKey())
      .addColumn('project_id', text, (c) => c.notNull())
      .addColumn('environment', text, (c) => c.notNull())
      .addColumn('revision', int, (c) => c.notNull())
      .addColumn('region', text, (c) => c.notNull())
      .addColumn('created_at', int, (c) => c.notNull())
      .addUniqueConstraint('instance_set_of_revision', ['project_id', 'environment', 'revision', 'region'])
      .addForeignKeyConstraint(
        'instance_set_environment',
        ['project_id', 'environment'],
        'environment',
        ['project_id', 'name'],
        (c) => c.onDelete('cascade'),
      )
      .execute();
    // Each set of what runs already is called as the first of its instances.
    await sql`
      insert into instance_set (id, project_id, environment, revision, region, created_at)
      select 'set' || substr(min(id), 4), project_id, environment, revision, region, min(created_at)
      from instance
      group by project_id, environment, revision, region`.execute(db);
  },
};
