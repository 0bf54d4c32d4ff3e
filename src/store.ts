// The database, ready to use: opened, brought up to date, and checked against the secret key. The service and the
// commands that work on the database directly both begin here.
import type { Config } from './config.ts';
import { makeDataDir, readOrMakeSecretKey } from './data-dir.ts';
import type { Database } from './db/database.ts';
import { isUnavailable } from './db/errors.ts';
import { checkSecretKey } from './db/key-check.ts';
import { migrate } from './db/migrate.ts';
import { openDatabase } from './db/open.ts';
import { createSeal, type Seal } from './lib/seal.ts';
import { StartError } from './lib/start-error.ts';

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
    if (isUnavailable(error)) throw new StartError(`The database cannot be reached: ${(error as Error).message}`);
    throw error;
  }
  return { ...database, seal };
}
