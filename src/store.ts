// The database, ready to use: opened, brought up to date, and checked against the secret key. The service and the
// commands that work on the database directly both begin here.
import { join } from 'node:path';
import type { Config } from './config.ts';
import { dataDirInUse, makeDataDir, readOrMakeSecretKey } from './data-dir.ts';
import type { Database } from './db/database.ts';
import { isUnavailable } from './db/database-errors.ts';
import { checkSecretKey } from './db/installation.ts';
import { type Migrated, migrate } from './db/migrate.ts';
import { openDatabase } from './db/open-database.ts';
import { continuePositions } from './events/event-positions.ts';
import type { Log } from './lib/log.ts';
import { type ProcessLock, takeProcessLock } from './lib/process-lock.ts';
import { createSeal, type Seal } from './lib/seal.ts';
import { StartTrouble } from './lib/start-error.ts';

/** PostgreSQL does not answer. That is no mistake in the settings: it may answer in a moment. */
export class DatabaseUnreachable extends Error {
  override readonly name = 'DatabaseUnreachable';

  constructor(cause: Error) {
    super(`The database cannot be reached: ${cause.message}`, { cause });
  }
}

export interface Store extends Database {
  seal: Seal;
}

/** `onWait`: another process is migrating the database, and this one waits for it. */
export async function openStore(
  config: Config,
  onConnectionLost: (error: Error) => void,
  onWait: () => void = () => {},
): Promise<Store> {
  const { databaseUrl: url, dataDir } = config;
  makeDataDir(dataDir);
  const seal = createSeal(config.secretKey ?? readOrMakeSecretKey(dataDir));
  const database = await openDatabase({ url, dataDir, onConnectionLost });
  try {
    if (url !== null) await migratePostgres(config, url, onWait);
    else await migrate(database.db, 'sqlite', { onWait });
    await checkSecretKey(database.db, seal);
    await continuePositions(database.db, database.dialect);
  } catch (error) {
    await database.close();
    throw explained(error, config);
  }
  return { ...database, seal };
}

/** Brings the database up to date, and no more. */
export async function migrateStore(config: Config, onWait: () => void): Promise<Migrated> {
  const { databaseUrl: url, dataDir } = config;
  makeDataDir(dataDir);
  try {
    return await (url === null ? migrateSqlite(dataDir, onWait) : migratePostgres(config, url, onWait));
  } catch (error) {
    throw explained(error, config);
  }
}

/** Not below a service that runs on it and knows only the version before. */
async function migrateSqlite(dataDir: string, onWait: () => void): Promise<Migrated> {
  const lock = lockDataDir(dataDir);
  const database = await openDatabase({ url: null, dataDir, onConnectionLost: () => {} });
  try {
    return await migrate(database.db, 'sqlite', { onWait });
  } finally {
    await database.close();
    lock.release();
  }
}

/** On a connection of its own, without limits: a migration takes as long as it needs. */
async function migratePostgres({ databaseDirectUrl, dataDir }: Config, url: string, onWait: () => void) {
  // Imported here so that a start on SQLite does not load it.
  const { refuseUndeclaredPooler } = await import('./db/postgres-client.ts');
  await refuseUndeclaredPooler('SLUICE_DATABASE_URL', url);
  if (databaseDirectUrl !== null) await refuseUndeclaredPooler('SLUICE_DATABASE_DIRECT_URL', databaseDirectUrl);
  const own = { url: databaseDirectUrl ?? url, dataDir, onConnectionLost: () => {}, unlimited: true };
  const database = await openDatabase(own);
  try {
    return await migrate(database.db, 'postgres', { onWait });
  } finally {
    await database.close();
  }
}

function explained(error: unknown, { databaseUrl, dataDir }: Config): unknown {
  if (!isUnavailable(error)) return error;
  if (databaseUrl !== null) return new DatabaseUnreachable(error as Error);
  return new StartTrouble(`The database in ${dataDir} cannot be opened: ${(error as Error).message}`);
}

/** SQLite is for one process, which holds this lock while it works on the database. */
export function lockDataDir(dir: string): ProcessLock {
  const lock = tryLock(dir);
  if (lock) return lock;
  throw dataDirInUse(dir);
}

/** null: another process has it. */
function tryLock(dir: string): ProcessLock | null {
  makeDataDir(dir);
  try {
    return takeProcessLock(join(dir, 'process.lock'));
  } catch (error) {
    throw new StartTrouble(`The database in ${dir} cannot be opened: ${(error as Error).message}`);
  }
}

/** The control process of a supervisor that was killed gives it up as soon as its loops have finished their step. */
const lockWithinMs = 60_000;
const lockRetryMs = 50;

/** For a process whose supervisor has made sure that no other service runs on the directory. */
export async function lockDataDirWhenFree(dir: string, log: Log): Promise<ProcessLock> {
  const giveUpAt = performance.now() + lockWithinMs;
  for (let isFirst = true; ; isFirst = false) {
    const lock = tryLock(dir);
    if (lock) return lock;
    if (performance.now() > giveUpAt) throw dataDirInUse(dir);
    if (isFirst) log.warn('waiting for another process to give up the data directory');
    await new Promise((resolve) => setTimeout(resolve, lockRetryMs));
  }
}

const firstRetryMs = 500;
const longestRetryMs = 5000;

/** Waits for a PostgreSQL that does not answer yet, and logs that it does. */
export async function openStoreWhenReachable(config: Config, log: Log): Promise<Store> {
  const onConnectionLost = (error: Error) => log.warn({ err: error }, 'a database connection was lost');
  const onWait = () => log.warn('waiting for another process, which is migrating the database');
  for (let retryMs = firstRetryMs; ; retryMs = Math.min(retryMs * 2, longestRetryMs)) {
    try {
      return await openStore(config, onConnectionLost, onWait);
    } catch (error) {
      if (!(error instanceof DatabaseUnreachable)) throw error;
      log.warn({ retry_ms: retryMs }, `waiting for the database. ${error.message}`);
      await new Promise((resolve) => setTimeout(resolve, retryMs));
    }
  }
}
