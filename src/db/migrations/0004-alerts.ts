import { sql } from 'kysely';
import { systemClock } from '../../lib/clock.ts';
import { createIds } from '../../lib/ids.ts';
import type { AnyDb, Columns, Migration } from '../dialect.ts';

export const alerts: Migration = {
  name: 'alerts',
  async up(db, columns) {
    await createRule(db, columns);
    await createAlert(db, columns);
    await createWatch(db, columns);
    // The active revision of every environment is read often, and old revisions pile up.
    await sql`create index revision_active on revision (project_id, environment, number) where state = 'active'`.execute(
      db,
    );
    await insertFirstRules(db);
  },
};

async function createRule(db: AnyDb, { text, int, real }: Columns): Promise<void> {
  await db.schema
    .createTable('alert_rule')
    .addColumn('id', text, (c) => c.primaryKey())
    .addColumn('project_id', text, (c) => c.notNull())
    .addColumn('environment', text, (c) => c.notNull())
    .addColumn('name', text, (c) => c.notNull())
    .addColumn('metric', text, (c) => c.notNull())
    .addColumn('comparator', text, (c) => c.notNull())
    .addColumn('threshold', real, (c) => c.notNull())
    .addColumn('hostname', text)
    .addColumn('window_s', int, (c) => c.notNull())
    .addColumn('for_s', int, (c) => c.notNull())
    .addColumn('severity', text, (c) => c.notNull())
    .addColumn('on_canary', text, (c) => c.notNull())
    .addColumn('enabled', int, (c) => c.notNull())
    .addColumn('created_at', int, (c) => c.notNull())
    .addColumn('updated_at', int, (c) => c.notNull())
    .addColumn('version', int, (c) => c.notNull())
    .addUniqueConstraint('alert_rule_name', ['project_id', 'environment', 'name'])
    .addForeignKeyConstraint(
      'alert_rule_environment',
      ['project_id', 'environment'],
      'environment',
      ['project_id', 'name'],
      (c) => c.onDelete('cascade'),
    )
    .execute();
  await db.schema.createIndex('alert_rule_by_project').on('alert_rule').columns(['project_id', 'id']).execute();
}

/** An alert has no foreign key to its rule: it stays when the rule is deleted. */
async function createAlert(db: AnyDb, { text, int, real }: Columns): Promise<void> {
  await db.schema
    .createTable('alert')
    .addColumn('id', text, (c) => c.primaryKey())
    .addColumn('account_id', text, (c) => c.notNull())
    .addColumn('project_id', text, (c) => c.notNull())
    .addColumn('rule_id', text, (c) => c.notNull())
    .addColumn('environment', text, (c) => c.notNull())
    .addColumn('subject', text, (c) => c.notNull())
    .addColumn('name', text, (c) => c.notNull())
    .addColumn('severity', text, (c) => c.notNull())
    .addColumn('message', text, (c) => c.notNull())
    .addColumn('revision', int)
    .addColumn('hostname', text)
    .addColumn('value', real, (c) => c.notNull())
    .addColumn('fired_at', int, (c) => c.notNull())
    .addColumn('resolved_at', int)
    .addForeignKeyConstraint(
      'alert_environment',
      ['project_id', 'environment'],
      'environment',
      ['project_id', 'name'],
      (c) => c.onDelete('cascade'),
    )
    .execute();
  // At most one firing alert per rule and subject, however many processes evaluate at the same time.
  await sql`create unique index alert_firing on alert (rule_id, subject) where resolved_at is null`.execute(db);
  await sql`create index alert_firing_by_environment on alert (project_id, environment, id) where resolved_at is null`.execute(
    db,
  );
  await db.schema.createIndex('alert_by_project').on('alert').columns(['project_id', 'id']).execute();
  await db.schema
    .createIndex('alert_by_environment')
    .on('alert')
    .columns(['project_id', 'environment', 'id'])
    .execute();
  await db.schema.createIndex('alert_by_rule').on('alert').columns(['rule_id', 'id']).execute();
}

async function createWatch(db: AnyDb, { text, int }: Columns): Promise<void> {
  await db.schema
    .createTable('alert_watch')
    .addColumn('rule_id', text, (c) => c.notNull().references('alert_rule.id').onDelete('cascade'))
    .addColumn('subject', text, (c) => c.notNull())
    .addColumn('holds', int, (c) => c.notNull())
    .addColumn('since', int, (c) => c.notNull())
    .addPrimaryKeyConstraint('alert_watch_pk', ['rule_id', 'subject'])
    .execute();
}

const errors = {
  name: 'Errors',
  metric: 'error_rate',
  comparator: 'gt',
  threshold: 0.05,
  for_s: 0,
  on_canary: 'abort',
};
const instances = {
  name: 'Instances',
  metric: 'healthy_instances',
  comparator: 'lt',
  threshold: 1,
  for_s: 15,
  on_canary: 'none',
};
const atOnce = 200;

/** Existing environments get the default rules too. */
async function insertFirstRules(db: AnyDb): Promise<void> {
  const ids = createIds(systemClock);
  const nowMs = systemClock.now();
  const environments = await db.selectFrom('environment').select(['project_id', 'name']).execute();
  const rows = environments.flatMap(({ project_id, name }) =>
    [errors, instances].map((rule) => ({
      id: ids('rul'),
      project_id,
      environment: name,
      hostname: null,
      window_s: 60,
      severity: 'critical',
      enabled: 1,
      created_at: nowMs,
      updated_at: nowMs,
      version: 1,
      ...rule,
    })),
  );
  for (let i = 0; i < rows.length; i += atOnce) {
    await db
      .insertInto('alert_rule')
      .values(rows.slice(i, i + atOnce))
      .execute();
  }
}
