import { sql } from 'kysely';
import type { AnyDb, Columns, Migration } from '../dialect.ts';

export const deployments: Migration = {
  name: 'deployments',
  async up(db, columns) {
    const { int } = columns;
    await db.schema
      .alterTable('project')
      .addColumn('next_sequence', int, (c) => c.notNull().defaultTo(1))
      .execute();
    await db.schema
      .alterTable('environment')
      .addColumn('next_revision', int, (c) => c.notNull().defaultTo(1))
      .execute();
    await createDeployment(db, columns);
    await createRevision(db, columns);
    await createInstance(db, columns);
    await createTraffic(db, columns);
    await createEvent(db, columns);
  },
};

async function createDeployment(db: AnyDb, { text, int }: Columns): Promise<void> {
  await db.schema
    .createTable('deployment')
    .addColumn('id', text, (c) => c.primaryKey())
    .addColumn('account_id', text, (c) => c.notNull())
    .addColumn('project_id', text, (c) => c.notNull())
    .addColumn('environment', text, (c) => c.notNull())
    .addColumn('kind', text, (c) => c.notNull())
    .addColumn('revision', int, (c) => c.notNull())
    .addColumn('previous_revision', int)
    .addColumn('image', text, (c) => c.notNull())
    .addColumn('digest', text)
    .addColumn('strategy', text, (c) => c.notNull())
    .addColumn('canary_percent', int)
    .addColumn('state', text, (c) => c.notNull())
    .addColumn('state_since', int, (c) => c.notNull())
    .addColumn('deadline_at', int)
    .addColumn('canary_phase', text)
    .addColumn('canary_step', int, (c) => c.notNull())
    .addColumn('canary_percent_now', int, (c) => c.notNull())
    .addColumn('step_since', int)
    .addColumn('step_until', int)
    .addColumn('failure_code', text)
    .addColumn('failure_message', text)
    .addColumn('failure_log', text)
    .addColumn('cause', text)
    .addColumn('note', text)
    .addColumn('created_by', text, (c) => c.notNull())
    .addColumn('created_at', int, (c) => c.notNull())
    .addColumn('started_at', int)
    .addColumn('finished_at', int)
    .addColumn('version', int, (c) => c.notNull())
    .addForeignKeyConstraint(
      'deployment_environment',
      ['project_id', 'environment'],
      'environment',
      ['project_id', 'name'],
      (c) => c.onDelete('cascade'),
    )
    .execute();
  // At most one unfinished deployment per environment, even if several are created at the same time.
  await sql`create unique index deployment_in_progress on deployment (project_id, environment) where finished_at is null`.execute(
    db,
  );
  await db.schema.createIndex('deployment_by_project').on('deployment').columns(['project_id', 'id']).execute();
  await db.schema
    .createIndex('deployment_by_environment')
    .on('deployment')
    .columns(['project_id', 'environment', 'id'])
    .execute();
  await db.schema
    .createTable('deployment_timeline')
    .addColumn('deployment_id', text, (c) => c.notNull().references('deployment.id').onDelete('cascade'))
    .addColumn('seq', int, (c) => c.notNull())
    .addColumn('at', int, (c) => c.notNull())
    .addColumn('state', text, (c) => c.notNull())
    .addColumn('message', text, (c) => c.notNull())
    .addPrimaryKeyConstraint('deployment_timeline_pk', ['deployment_id', 'seq'])
    .execute();
}

async function createRevision(db: AnyDb, { text, int }: Columns): Promise<void> {
  await db.schema
    .createTable('revision')
    .addColumn('project_id', text, (c) => c.notNull())
    .addColumn('environment', text, (c) => c.notNull())
    .addColumn('number', int, (c) => c.notNull())
    .addColumn('deployment_id', text, (c) => c.notNull())
    .addColumn('image', text, (c) => c.notNull())
    .addColumn('digest', text)
    .addColumn('port', int, (c) => c.notNull())
    .addColumn('variables_sealed', text)
    .addColumn('state', text, (c) => c.notNull())
    .addColumn('traffic_percent', int, (c) => c.notNull())
    .addColumn('restored_from', int)
    .addColumn('created_at', int, (c) => c.notNull())
    .addColumn('activated_at', int)
    .addColumn('retired_at', int)
    .addPrimaryKeyConstraint('revision_pk', ['project_id', 'environment', 'number'])
    .addForeignKeyConstraint(
      'revision_environment',
      ['project_id', 'environment'],
      'environment',
      ['project_id', 'name'],
      (c) => c.onDelete('cascade'),
    )
    .execute();
}

async function createInstance(db: AnyDb, { text, int }: Columns): Promise<void> {
  await db.schema
    .createTable('instance')
    .addColumn('id', text, (c) => c.primaryKey())
    .addColumn('project_id', text, (c) => c.notNull())
    .addColumn('environment', text, (c) => c.notNull())
    .addColumn('revision', int, (c) => c.notNull())
    .addColumn('region', text, (c) => c.notNull())
    .addColumn('state', text, (c) => c.notNull())
    .addColumn('host', text)
    .addColumn('port', int)
    .addColumn('created_at', int, (c) => c.notNull())
    .addColumn('state_since', int, (c) => c.notNull())
    .addForeignKeyConstraint(
      'instance_environment',
      ['project_id', 'environment'],
      'environment',
      ['project_id', 'name'],
      (c) => c.onDelete('cascade'),
    )
    .execute();
  await db.schema
    .createIndex('instance_by_environment')
    .on('instance')
    .columns(['project_id', 'environment'])
    .execute();
  await db.schema
    .createTable('environment_lease')
    .addColumn('project_id', text, (c) => c.notNull())
    .addColumn('environment', text, (c) => c.notNull())
    .addColumn('owner', text, (c) => c.notNull())
    .addColumn('until', int, (c) => c.notNull())
    .addPrimaryKeyConstraint('environment_lease_pk', ['project_id', 'environment'])
    .execute();
}

async function createTraffic(db: AnyDb, { text, int }: Columns): Promise<void> {
  await db.schema
    .createTable('traffic')
    .addColumn('project_id', text, (c) => c.notNull())
    .addColumn('environment', text, (c) => c.notNull())
    .addColumn('revision', int, (c) => c.notNull())
    .addColumn('at', int, (c) => c.notNull())
    .addColumn('router', text, (c) => c.notNull())
    .addColumn('requests', int, (c) => c.notNull())
    .addColumn('errors', int, (c) => c.notNull())
    .addColumn('latency', text, (c) => c.notNull())
    .addPrimaryKeyConstraint('traffic_pk', ['project_id', 'environment', 'at', 'revision', 'router'])
    .execute();
  await db.schema.createIndex('traffic_by_age').on('traffic').column('at').execute();
}

async function createEvent(db: AnyDb, { text, int }: Columns): Promise<void> {
  await db.schema
    .createTable('event')
    .addColumn('id', text, (c) => c.primaryKey())
    .addColumn('account_id', text, (c) => c.notNull())
    .addColumn('project_id', text, (c) => c.notNull())
    .addColumn('type', text, (c) => c.notNull())
    .addColumn('sequence', int, (c) => c.notNull())
    .addColumn('body', text, (c) => c.notNull())
    .addColumn('created_at', int, (c) => c.notNull())
    .addUniqueConstraint('event_sequence', ['project_id', 'sequence'])
    .execute();
  await db.schema.createIndex('event_by_account').on('event').columns(['account_id', 'id']).execute();
}
