// The database, ready to use: opened, brought up to date, and checked against the secret key. The service and the
// commands that work on the database directly both begin here.
import { join } from 'node:path';
import type { Config } from './config.ts';
import { makeDataDir, readOrMakeSecretKey } from './data-dir.ts';
import type { Database } from './db/database.ts';
import { isUnavailable } from './db/errors.ts';
import { checkSecretKey } from './db/key-check.ts';
import { migrate } from './db/migrate.ts';
import { openDatabase } from './db/open.ts';
import type { Log } from './lib/log.ts';
import { type ProcessLock, takeProcessLock } from './lib/process-lock.ts';
import { createSeal, type Seal } from './lib/seal.ts';
import { StartError } from './lib/start-error.ts';

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

export async function openStore(config: Config, onConnectionLost: (error: Error) => void): Promise<Store> {
  makeDataDir(config.dataDir);
  const seal = createSeal(config.secretKey ?? readOrMakeSecretKey(config.dataDir));
  const database = await openDatabase({ url: config.databaseUrl, dataDir: config.dataDir, onConnectionLost });
  try {
    await migrate(database.db, database.dialect);
    await checkSecretKey(database.db, seal);
  } catch (error) {
    await database.close();
    if (!isUnavailable(error)) throw error;
    if (config.databaseUrl !== null) throw new DatabaseUnreachable(error as Error);
    throw new StartError(`The database in ${config.dataDir} cannot be opened: ${(error as Error).message}`);
  }
  return { ...database, seal };
}

/** SQLite is for one process, which holds this lock while it works on the database. */
export function lockDataDir(dir: string): ProcessLock {
  makeDataDir(dir);
  const lock = takeProcessLock(join(dir, 'process.lock'));
  if (lock) return lock;
  throw new StartError(
    `Another Sluice runs on ${dir}. Stop it, choose another SLUICE_DATA_DIR, or set SLUICE_DATABASE_URL to share a PostgreSQL.`,
  );
}

const firstRetryMs = 500;
const longestRetryMs = 5000;

/** Waits for a PostgreSQL that does not answer yet, and logs that it does. */
export async function openStoreWhenReachable(config: Config, log: Log): Promise<Store> {
  for (let retryMs = firstRetryMs; ; retryMs = Math.min(retryMs * 2, longestRetryMs)) {
    try {
      return await openStore(config, (error) => log.warn({ err: error }, 'a database connection was lost'));
    } catch (error) {
      if (!(error instanceof DatabaseUnreachable)) throw error;
      log.warn({ retry_ms: retryMs }, `waiting for the database. ${error.message}`);
      await new Promise((resolve) => setTimeout(resolve, retryMs));
    }
  }
}
