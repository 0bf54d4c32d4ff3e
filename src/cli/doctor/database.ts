// The database as it is, read only: whether it answers and whether this version can work with it.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import type { Config } from '../../config.ts';
import { StartError } from '../../lib/start-error.ts';
import { type Finding, ok, problem } from './finding.ts';

const what = 'database';
const versionQuery = 'select max(version) as version from migration';

async function judge(found: string, version: number): Promise<Finding> {
  const { latestVersion } = await import('../../db/migrate.ts');
  if (version > latestVersion)
    return problem(
      what,
      `${found} is at version ${version}, this Sluice knows ${latestVersion}`,
      'start a newer Sluice, or restore a backup made before the upgrade',
    );
  if (version === latestVersion) return ok(what, `${found}, at version ${version}`);
  return ok(what, `${found}, at version ${version}; the next start brings it to ${latestVersion}`);
}

async function lookAtSqlite(dataDir: string): Promise<Finding> {
  const path = join(dataDir, 'sluice.db');
  if (!existsSync(path)) return ok(what, 'SQLite; the first start makes it');
  const database = new DatabaseSync(path, { readOnly: true, timeout: 2000 });
  try {
    return await judge('SQLite', Number(database.prepare(versionQuery).get()?.version ?? 0));
  } finally {
    database.close();
  }
}

async function lookAtPostgres(url: string): Promise<Finding> {
  const { connectOnce } = await import('../../db/postgres-client.ts');
  const { refuseUndeclaredPooler } = await import('../../db/postgres-client.ts');
  await refuseUndeclaredPooler('SLUICE_DATABASE_URL', url);
  const client = await connectOnce(url);
  try {
    const there = await client.query(`select to_regclass('migration') as name`);
    const version = there.rows[0]?.name === null ? 0 : Number((await client.query(versionQuery)).rows[0]?.version ?? 0);
    return await judge('PostgreSQL', version);
  } finally {
    await client.end().catch(() => {});
  }
}

export async function lookAtDatabase({ databaseUrl, dataDir }: Config): Promise<Finding> {
  try {
    return await (databaseUrl === null ? lookAtSqlite(dataDir) : lookAtPostgres(databaseUrl));
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    const reason = error instanceof StartError ? error.lines.join(' ') : message || code || 'it does not answer';
    const todo = databaseUrl === null ? 'is it a database of Sluice?' : 'is it running, and SLUICE_DATABASE_URL right?';
    return problem(what, `${databaseUrl === null ? 'SQLite' : 'PostgreSQL'}: ${reason}`, todo);
  }
}
