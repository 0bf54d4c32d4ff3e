// A migrated database of SQLite, for tests to copy (test/helpers/app.ts).
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { migrate } from '../../src/db/migrate.ts';
import { openDatabase } from '../../src/db/open-database.ts';

/** Returns its path: a file in that folder, with nothing beside it. */
export async function createSqliteTemplate(folder: string): Promise<string> {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const database = await openDatabase({ url: null, dataDir: folder, onConnectionLost: () => {} });
  await migrate(database.db, 'sqlite');
  await database.close();
  const path = join(folder, 'sluice.db');
  // The connection that is closed last may be one that only reads, which leaves everything in the file beside it.
  const handle = new DatabaseSync(path);
  handle.exec('pragma wal_checkpoint(truncate)');
  handle.close();
  return path;
}
