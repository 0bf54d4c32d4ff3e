import { sql } from 'kysely';
import type { AnyDb, Columns, Migration } from '../dialect.ts';

/** Health check and resources become part of a revision, and what instances use is measured. */
export const revisionSettings: Migration = {
  name: 'revision-settings',
  async up(db, columns) {
    await addResources(db, columns);
    await addRevisionSettings(db, columns);
    await createUsage(db, columns);
  },
};

/** What every instance has had so far. */
const resources = JSON.stringify({ memory_mb: 512, cpus: 1 });

async function addResources(db: AnyDb, { text }: Columns): Promise<void> {
  await db.schema
    .alterTable('environment')
    .addColumn('resources', text, (c) => c.notNull().defaultTo(resources))
    .execute();
}

/** Revisions of before go on with what their environment had when this was carried out. */
async function addRevisionSettings(db: AnyDb, { text }: Columns): Promise<void> {
  await db.schema
    .alterTable('revision')
    .addColumn('health_check', text, (c) => c.notNull().defaultTo('{}'))
    .execute();
  await db.schema
    .alterTable('revision')
    .addColumn('resources', text, (c) => c.notNull().defaultTo(resources))
    .execute();
  await sql`update revision set health_check = (
    select e.health_check from environment as e
    where e.project_id = revision.project_id and e.name = revision.environment)`.execute(db);
}

async function createUsage(db: AnyDb, { text, int }: Columns): Promise<void> {
  await db.schema
    .createTable('instance_usage')
    .addColumn('project_id', text, (c) => c.notNull())
    .addColumn('environment', text, (c) => c.notNull())
    .addColumn('revision', int, (c) => c.notNull())
    .addColumn('instance_id', text, (c) => c.notNull())
    .addColumn('at', int, (c) => c.notNull())
    .addColumn('memory_bytes', int, (c) => c.notNull())
    .addColumn('cpu_ms', int, (c) => c.notNull())
    .addPrimaryKeyConstraint('instance_usage_pk', ['project_id', 'environment', 'at', 'instance_id'])
    .execute();
  await db.schema.createIndex('instance_usage_by_age').on('instance_usage').column('at').execute();
}
