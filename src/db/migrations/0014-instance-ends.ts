import type { AnyDb, Columns, Migration } from '../dialect.ts';

/** How instances ended, what their last health check said, the health of environments, and whether a port was set. */
export const instanceEnds: Migration = {
  name: 'instance-ends',
  async up(db, columns) {
    await createInstanceEnd(db, columns);
    await extendInstance(db, columns);
    await extendEnvironment(db, columns);
  },
};

async function createInstanceEnd(db: AnyDb, { text, int }: Columns): Promise<void> {
  await db.schema
    .createTable('instance_end')
    .addColumn('id', text, (c) => c.primaryKey())
    .addColumn('project_id', text, (c) => c.notNull())
    .addColumn('environment', text, (c) => c.notNull())
    .addColumn('revision', int, (c) => c.notNull())
    .addColumn('node', text)
    .addColumn('restarts', int, (c) => c.notNull())
    .addColumn('started_at', int)
    .addColumn('ended_at', int, (c) => c.notNull())
    .addColumn('exit_code', int)
    .addColumn('reason', text, (c) => c.notNull())
    .addColumn('message', text, (c) => c.notNull())
    .addColumn('checked_at', int)
    .addColumn('check_ok', int)
    .addColumn('check_message', text)
    .addColumn('replaced', int, (c) => c.notNull())
    .addForeignKeyConstraint(
      'instance_end_environment',
      ['project_id', 'environment'],
      'environment',
      ['project_id', 'name'],
      (c) => c.onDelete('cascade'),
    )
    .execute();
  await db.schema
    .createIndex('instance_end_by_environment')
    .on('instance_end')
    .columns(['project_id', 'environment', 'ended_at'])
    .execute();
}

async function extendInstance(db: AnyDb, { text, int }: Columns): Promise<void> {
  const alter = () => db.schema.alterTable('instance');
  await alter()
    .addColumn('restarts', int, (c) => c.notNull().defaultTo(0))
    .execute();
  await alter().addColumn('node', text).execute();
  for (const name of ['started_at', 'checked_at', 'check_ok']) await alter().addColumn(name, int).execute();
  await alter().addColumn('check_message', text).execute();
  await db
    .updateTable('instance')
    .set((e) => ({ started_at: e.ref('created_at') }))
    .execute();
}

/** Of an environment from before, nobody knows whether its port was set: it keeps the one it has. */
async function extendEnvironment(db: AnyDb, { text, int }: Columns): Promise<void> {
  const alter = () => db.schema.alterTable('environment');
  await alter()
    .addColumn('port_set', int, (c) => c.notNull().defaultTo(1))
    .execute();
  await alter()
    .addColumn('health_state', text, (c) => c.notNull().defaultTo('idle'))
    .execute();
  await alter()
    .addColumn('health_since', int, (c) => c.notNull().defaultTo(0))
    .execute();
  await alter().addColumn('health_reason', text).execute();
  await db
    .updateTable('environment')
    .set((e) => ({ health_since: e.ref('created_at') }))
    .execute();
}
