// What the engines of the regions have been so far, read from the database as it is.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import type { Config } from '../../config.ts';

interface Row {
  name: string;
  value: string;
}

const prefix = 'engine.';
const query = `select name, value from meta where name like '${prefix}%'`;

/** By region. Empty where the database does not answer, which is another finding of the doctor. */
export async function readRememberedEngines({ databaseUrl, dataDir }: Config): Promise<Map<string, string>> {
  const rows = await (databaseUrl === null ? readSqlite(dataDir) : readPostgres(databaseUrl)).catch((): Row[] => []);
  return new Map(rows.map(({ name, value }) => [name.slice(prefix.length), value]));
}

async function readSqlite(dataDir: string): Promise<Row[]> {
  const path = join(dataDir, 'sluice.db');
  if (!existsSync(path)) return [];
  const database = new DatabaseSync(path, { readOnly: true, timeout: 2000 });
  try {
    return database.prepare(query).all() as unknown as Row[];
  } finally {
    database.close();
  }
}

async function readPostgres(url: string): Promise<Row[]> {
  const { default: pg } = await import('pg');
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 5000, query_timeout: 5000 });
  client.on('error', () => {});
  try {
    await client.connect();
    return (await client.query(query)).rows;
  } finally {
    await client.end().catch(() => {});
  }
}
