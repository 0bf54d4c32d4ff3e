import type { AnyDb, Columns, Migration } from '../dialect.ts';

export const domains: Migration = {
  name: 'domains',
  async up(db, columns) {
    await createDomain(db, columns);
    await createCertificate(db, columns);
    await createAcme(db, columns);
  },
};

async function createDomain(db: AnyDb, { text, int }: Columns): Promise<void> {
  await db.schema
    .createTable('domain')
    .addColumn('id', text, (c) => c.primaryKey())
    .addColumn('account_id', text, (c) => c.notNull())
    .addColumn('project_id', text, (c) => c.notNull())
    .addColumn('environment', text, (c) => c.notNull())
    .addColumn('hostname', text, (c) => c.notNull().unique())
    .addColumn('state', text, (c) => c.notNull())
    .addColumn('certificate_id', text)
    .addColumn('last_error', text)
    .addColumn('failures', int, (c) => c.notNull())
    .addColumn('next_attempt_at', int)
    .addColumn('wait_until', int)
    .addColumn('renew_asked', int, (c) => c.notNull())
    .addColumn('lease_owner', text)
    .addColumn('lease_until', int, (c) => c.notNull())
    .addColumn('order_directory', text)
    .addColumn('order_url', text)
    .addColumn('order_key_sealed', text)
    .addColumn('created_at', int, (c) => c.notNull())
    .addColumn('updated_at', int, (c) => c.notNull())
    .addColumn('version', int, (c) => c.notNull())
    .addForeignKeyConstraint(
      'domain_environment',
      ['project_id', 'environment'],
      'environment',
      ['project_id', 'name'],
      (c) => c.onDelete('cascade'),
    )
    .execute();
  await db.schema.createIndex('domain_by_project').on('domain').columns(['project_id', 'id']).execute();
  await db.schema
    .createIndex('domain_by_environment')
    .on('domain')
    .columns(['project_id', 'environment', 'id'])
    .execute();
  await db.schema.createIndex('domain_due').on('domain').column('next_attempt_at').execute();
}

async function createCertificate(db: AnyDb, { text, int }: Columns): Promise<void> {
  await db.schema
    .createTable('certificate')
    .addColumn('id', text, (c) => c.primaryKey())
    .addColumn('domain_id', text, (c) => c.notNull().references('domain.id').onDelete('cascade'))
    .addColumn('issuer', text, (c) => c.notNull())
    .addColumn('serial', text, (c) => c.notNull())
    .addColumn('not_before', int, (c) => c.notNull())
    .addColumn('not_after', int, (c) => c.notNull())
    .addColumn('renew_at', int, (c) => c.notNull())
    .addColumn('fingerprint_sha256', text, (c) => c.notNull())
    .addColumn('chain_pem', text, (c) => c.notNull())
    .addColumn('key_sealed', text, (c) => c.notNull())
    .addColumn('ari_id', text)
    .addColumn('ari_ask_at', int)
    .addColumn('created_at', int, (c) => c.notNull())
    .execute();
  await db.schema.createIndex('certificate_by_domain').on('certificate').columns(['domain_id', 'id']).execute();
}

async function createAcme(db: AnyDb, { text, int }: Columns): Promise<void> {
  await db.schema
    .createTable('acme_account')
    .addColumn('directory', text, (c) => c.primaryKey())
    .addColumn('url', text)
    .addColumn('key_sealed', text, (c) => c.notNull())
    .execute();
  await db.schema
    .createTable('acme_challenge')
    .addColumn('token', text, (c) => c.primaryKey())
    .addColumn('hostname', text, (c) => c.notNull())
    .addColumn('key_authorization', text, (c) => c.notNull())
    .addColumn('created_at', int, (c) => c.notNull())
    .execute();
  await db.schema.createIndex('acme_challenge_by_hostname').on('acme_challenge').column('hostname').execute();
}
