import { sql } from 'kysely';
import { StartError } from '../lib/start-error.ts';
import { foundation } from './migrations/0001-foundation.ts';
import { deployments } from './migrations/0002-deployments.ts';
import { webhooks } from './migrations/0003-webhooks.ts';
import { alerts } from './migrations/0004-alerts.ts';
import { domains } from './migrations/0005-domains.ts';
import { deliveryLeases } from './migrations/0006-delivery-leases.ts';
import { routers } from './migrations/0009-routers.ts';
import { type AnyDb, columnsFor, type DialectName, type Migration } from './migrations/types.ts';

const migrations: Migration[] = [foundation, deployments, webhooks, alerts, domains, deliveryLeases, routers];

export const latestVersion = migrations.length;

/** Migrates the database to the latest version, in one transaction. Several processes may call it at once. */
export async function migrate(db: AnyDb, dialect: DialectName): Promise<void> {
  await db.transaction().execute(async (tx) => {
    if (dialect === 'postgres') {
      // Processes that start at once wait for the one that migrates, and a migration takes as long as it needs.
      await sql`set local statement_timeout = 0`.execute(tx);
      await sql`set local idle_in_transaction_session_timeout = 0`.execute(tx);
      await sql`select pg_advisory_xact_lock(7310391)`.execute(tx);
    }
    await tx.schema
      .createTable('migration')
      .ifNotExists()
      .addColumn('version', 'integer', (c) => c.primaryKey())
      .addColumn('name', 'text', (c) => c.notNull())
      .execute();
    const row = await tx
      .selectFrom('migration')
      .select((e) => e.fn.max('version').as('version'))
      .executeTakeFirst();
    const current = Number(row?.version ?? 0);
    if (current > latestVersion) {
      throw new StartError(
        `The database is at version ${current}, this Sluice knows versions up to ${latestVersion}: ` +
          'start a newer Sluice, or restore a backup made before the upgrade.',
      );
    }
    for (const [index, migration] of migrations.entries()) {
      if (index < current) continue;
      await migration.up(tx, columnsFor(dialect));
      await tx
        .insertInto('migration')
        .values({ version: index + 1, name: migration.name })
        .execute();
    }
  });
}
