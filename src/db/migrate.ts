import { sql } from 'kysely';
import { StartError } from '../lib/start-error.ts';
import { isLocked } from './database-errors.ts';
import { type AnyDb, columnsFor, type DialectName, type Migration } from './dialect.ts';
import { foundation } from './migrations/0001-foundation.ts';
import { deployments } from './migrations/0002-deployments.ts';
import { webhooks } from './migrations/0003-webhooks.ts';
import { alerts } from './migrations/0004-alerts.ts';
import { domains } from './migrations/0005-domains.ts';
import { deliveryLeases } from './migrations/0006-delivery-leases.ts';
import { positions } from './migrations/0007-positions.ts';
import { routers } from './migrations/0008-routers.ts';
import { instancePorts } from './migrations/0009-instance-ports.ts';
import { identity } from './migrations/0011-identity.ts';
import { registries } from './migrations/0012-registries.ts';
import { clientErrors } from './migrations/0013-client-errors.ts';
import { instanceEnds } from './migrations/0014-instance-ends.ts';
import { revisionSettings } from './migrations/0015-revision-settings.ts';
import { logs } from './migrations/0016-logs.ts';
import { instanceSets } from './migrations/0017-instance-sets.ts';
import { canaryAnalysis } from './migrations/0018-canary-analysis.ts';
import { consoleSessions } from './migrations/0019-console.ts';
import { boundedTransactions } from './migrations/0020-bounded-transactions.ts';
import { keptHosts } from './migrations/0021-kept-hosts.ts';
import { pulls } from './migrations/0022-pulls.ts';
import { fallbackInstances } from './migrations/0023-fallback-instances.ts';
import { quotas } from './migrations/0024-quotas.ts';
import { longLives } from './migrations/0025-long-lives.ts';
import { txtRecords } from './migrations/0026-txt-records.ts';

export const migrations: Migration[] = [
  foundation,
  deployments,
  webhooks,
  alerts,
  domains,
  deliveryLeases,
  positions,
  routers,
  instancePorts,
  identity,
  registries,
  clientErrors,
  instanceEnds,
  revisionSettings,
  logs,
  instanceSets,
  canaryAnalysis,
  consoleSessions,
  boundedTransactions,
  keptHosts,
  pulls,
  fallbackInstances,
  quotas,
  longLives,
  txtRecords,
];

export const latestVersion = migrations.length;

export interface Migrated {
  from: number;
  to: number;
  /** The names of the migrations that were carried out. */
  applied: string[];
}

interface MigrateOptions {
  /** Called once, after a second of waiting for another process that migrates: it may take as long as it needs. */
  onWait?(): void;
  /** Those of this version, unless a test has others. */
  known?: readonly Migration[];
}

const retryMs = 250;

/** Migrates the database to the latest version, in one transaction. Several processes may call it at once. */
export async function migrate(
  db: AnyDb,
  dialect: DialectName,
  { onWait = () => {}, known = migrations }: MigrateOptions = {},
): Promise<Migrated> {
  for (let attempts = 1; ; attempts++) {
    const migrated = await (dialect === 'postgres' ? tryOnPostgres(db, known) : tryOnSqlite(db, known));
    if (migrated) return migrated;
    if (attempts === 4) onWait();
    await new Promise((resolve) => setTimeout(resolve, retryMs));
  }
}

/**
 * null: another process migrates. The lock belongs to the transaction and not to the session, and is asked for again and
 * again instead of waited for, so that this works through a pooler too.
 */
function tryOnPostgres(db: AnyDb, known: readonly Migration[]): Promise<Migrated | null> {
  return db.transaction().execute(async (tx) => {
    await sql`set local statement_timeout = 0`.execute(tx);
    await sql`set local idle_in_transaction_session_timeout = 0`.execute(tx);
    const { rows } = await sql<{ free: boolean }>`select pg_try_advisory_xact_lock(7310391) as free`.execute(tx);
    return rows[0]!.free ? migrateWithin(tx, 'postgres', known) : null;
  });
}

/** null: another process writes. */
async function tryOnSqlite(db: AnyDb, known: readonly Migration[]): Promise<Migrated | null> {
  try {
    return await db.transaction().execute((tx) => migrateWithin(tx, 'sqlite', known));
  } catch (error) {
    if (isLocked(error)) return null;
    throw error;
  }
}

async function migrateWithin(tx: AnyDb, dialect: DialectName, known: readonly Migration[]): Promise<Migrated> {
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
  if (current > known.length) {
    throw new StartError(
      `The database is at version ${current}, this Sluice knows versions up to ${known.length}: ` +
        'start a newer Sluice, or restore a backup made before the upgrade.',
    );
  }
  for (const [index, migration] of known.entries()) {
    if (index < current) continue;
    await migration.up(tx, columnsFor(dialect));
    await tx
      .insertInto('migration')
      .values({ version: index + 1, name: migration.name })
      .execute();
  }
  return { from: current, to: known.length, applied: known.slice(current).map(({ name }) => name) };
}

/** Reads only: what `migrate` would do. */
export async function pendingMigrations(db: AnyDb): Promise<{ from: number; to: number; pending: string[] }> {
  const row = await db
    .selectFrom('migration')
    .select((e) => e.fn.max('version').as('version'))
    .executeTakeFirst();
  const from = Number(row?.version ?? 0);
  return { from, to: latestVersion, pending: migrations.slice(from).map(({ name }) => name) };
}

/** For what reads the tables of exactly this version. */
export async function requireVersion(db: AnyDb): Promise<void> {
  const { from, to } = await pendingMigrations(db);
  if (from !== to)
    throw new StartError(`The database is at version ${from}, and this Sluice needs ${to}: use that of the service.`);
}
