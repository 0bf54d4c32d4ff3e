import { sql } from 'kysely';
import type { Migration } from '../dialect.ts';

export const foundation: Migration = {
  name: 'foundation',
  async up(db, { text, int }) {
    await db.schema
      .createTable('account')
      .addColumn('id', text, (c) => c.primaryKey())
      .addColumn('name', text, (c) => c.notNull())
      .addColumn('created_at', int, (c) => c.notNull())
      .execute();

    await db.schema
      .createTable('token')
      .addColumn('id', text, (c) => c.primaryKey())
      .addColumn('account_id', text, (c) => c.notNull().references('account.id'))
      .addColumn('kind', text, (c) => c.notNull())
      .addColumn('name', text, (c) => c.notNull())
      .addColumn('hash', text, (c) => c.notNull().unique())
      .addColumn('scopes', text, (c) => c.notNull())
      .addColumn('bound', int, (c) => c.notNull())
      .addColumn('expires_at', int)
      .addColumn('last_used_at', int)
      .addColumn('revoked_at', int)
      .addColumn('created_at', int, (c) => c.notNull())
      .addColumn('version', int, (c) => c.notNull())
      .execute();
    await db.schema.createIndex('token_by_account').on('token').columns(['account_id', 'id']).execute();
    await sql`create unique index token_one_admin on token (kind) where kind = 'admin'`.execute(db);

    await db.schema
      .createTable('project')
      .addColumn('id', text, (c) => c.primaryKey())
      .addColumn('account_id', text, (c) => c.notNull().references('account.id'))
      .addColumn('name', text, (c) => c.notNull())
      .addColumn('slug', text, (c) => c.notNull())
      .addColumn('description', text)
      .addColumn('labels', text, (c) => c.notNull())
      .addColumn('created_at', int, (c) => c.notNull())
      .addColumn('updated_at', int, (c) => c.notNull())
      .addColumn('version', int, (c) => c.notNull())
      .addUniqueConstraint('project_slug', ['account_id', 'slug'])
      .execute();
    await db.schema.createIndex('project_by_account').on('project').columns(['account_id', 'id']).execute();

    await db.schema
      .createTable('token_project')
      .addColumn('token_id', text, (c) => c.notNull().references('token.id').onDelete('cascade'))
      .addColumn('project_id', text, (c) => c.notNull())
      .addPrimaryKeyConstraint('token_project_pk', ['token_id', 'project_id'])
      .execute();

    await db.schema
      .createTable('environment')
      .addColumn('project_id', text, (c) => c.notNull().references('project.id').onDelete('cascade'))
      .addColumn('name', text, (c) => c.notNull())
      .addColumn('region', text, (c) => c.notNull())
      .addColumn('host', text, (c) => c.notNull().unique())
      .addColumn('replicas', int, (c) => c.notNull())
      .addColumn('port', int, (c) => c.notNull())
      .addColumn('variable_names', text, (c) => c.notNull())
      .addColumn('variables_sealed', text)
      .addColumn('health_check', text, (c) => c.notNull())
      .addColumn('canary', text, (c) => c.notNull())
      .addColumn('auto_rollback', int, (c) => c.notNull())
      .addColumn('retention', int, (c) => c.notNull())
      .addColumn('drain_s', int, (c) => c.notNull())
      .addColumn('locked_reason', text)
      .addColumn('locked_at', int)
      .addColumn('created_at', int, (c) => c.notNull())
      .addColumn('updated_at', int, (c) => c.notNull())
      .addColumn('version', int, (c) => c.notNull())
      .addPrimaryKeyConstraint('environment_pk', ['project_id', 'name'])
      .execute();

    await db.schema
      .createTable('audit')
      .addColumn('id', text, (c) => c.primaryKey())
      .addColumn('account_id', text, (c) => c.notNull())
      .addColumn('action', text, (c) => c.notNull())
      .addColumn('resource', text, (c) => c.notNull())
      .addColumn('project_id', text)
      .addColumn('token_id', text, (c) => c.notNull())
      .addColumn('request_id', text, (c) => c.notNull())
      .addColumn('address', text, (c) => c.notNull())
      .addColumn('created_at', int, (c) => c.notNull())
      .execute();
    await db.schema.createIndex('audit_by_account').on('audit').columns(['account_id', 'id']).execute();
    await db.schema.createIndex('audit_by_project').on('audit').columns(['account_id', 'project_id', 'id']).execute();

    await db.schema
      .createTable('idempotency')
      .addColumn('token_id', text, (c) => c.notNull())
      .addColumn('key', text, (c) => c.notNull())
      .addColumn('route', text, (c) => c.notNull())
      .addColumn('body_hash', text, (c) => c.notNull())
      .addColumn('owner', text)
      .addColumn('lease_until', int, (c) => c.notNull())
      .addColumn('response_sealed', text)
      .addColumn('created_at', int, (c) => c.notNull())
      .addPrimaryKeyConstraint('idempotency_pk', ['token_id', 'key', 'route'])
      .execute();
    await db.schema.createIndex('idempotency_by_age').on('idempotency').column('created_at').execute();

    await db.schema
      .createTable('rate_cell')
      .addColumn('key', text, (c) => c.notNull())
      .addColumn('cell', int, (c) => c.notNull())
      .addColumn('count', int, (c) => c.notNull())
      .addColumn('granted', int, (c) => c.notNull())
      .addPrimaryKeyConstraint('rate_cell_pk', ['key', 'cell'])
      .execute();
    await db.schema.createIndex('rate_cell_by_age').on('rate_cell').column('cell').execute();

    await db.schema
      .createTable('meta')
      .addColumn('name', text, (c) => c.primaryKey())
      .addColumn('value', text, (c) => c.notNull())
      .execute();
  },
};
