import type { AnyDb, Columns, Migration } from '../dialect.ts';

/**
 * Routing changes by environment, and routers say which version they have in force. The rows of `routing` outlive their
 * environments, so that routers learn that these are gone.
 */
export const routers: Migration = {
  name: 'routers',
  async up(db, columns) {
    await createRouting(db, columns);
    await createRouter(db, columns);
  },
};

async function createRouting(db: AnyDb, { text, int }: Columns): Promise<void> {
  await db.schema
    .createTable('routing')
    .addColumn('project_id', text, (c) => c.notNull())
    .addColumn('environment', text, (c) => c.notNull())
    .addColumn('version', int, (c) => c.notNull())
    .addPrimaryKeyConstraint('routing_pk', ['project_id', 'environment'])
    .execute();
  await db.schema.createIndex('routing_by_version').on('routing').column('version').execute();
}

async function createRouter(db: AnyDb, { text, int }: Columns): Promise<void> {
  await db.schema
    .createTable('router')
    .addColumn('id', text, (c) => c.primaryKey())
    .addColumn('version', int, (c) => c.notNull())
    .addColumn('beat', int, (c) => c.notNull())
    .execute();
  await db.schema
    .createTable('instance_drain')
    .addColumn('instance_id', text, (c) => c.primaryKey().references('instance.id').onDelete('cascade'))
    .addColumn('version', int, (c) => c.notNull())
    .addColumn('unrouted_at', int)
    .execute();
}
