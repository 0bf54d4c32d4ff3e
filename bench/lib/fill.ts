// Fills the database of a stopped service with projects, each with its environment, as fast as SQLite takes them.
import { join } from 'node:path';
import { DatabaseSync, type SQLInputValue } from 'node:sqlite';
import { newEnvironment } from '../../src/environments/change-environment.ts';
import { createIds } from '../../src/lib/ids.ts';

function insertOf(database: DatabaseSync, table: string, row: object): (row: object) => void {
  const names = Object.keys(row);
  const statement = database.prepare(
    `insert into ${table} (${names.join(', ')}) values (${names.map(() => '?').join(', ')})`,
  );
  return (values) => void statement.run(...(Object.values(values) as SQLInputValue[]));
}

export function fillProjects(dataDir: string, count: number): void {
  const database = new DatabaseSync(join(dataDir, 'sluice.db'));
  database.exec('pragma journal_mode = wal; pragma synchronous = off; pragma cache_size = -262144');
  const account = database.prepare('select id from account limit 1').get() as { id: string };
  let nowMs = Date.now() - count;
  const ids = createIds({ now: () => nowMs });
  const project = (n: number) => ({
    id: ids('prj'),
    account_id: account.id,
    name: `Project ${n}`,
    slug: `p-${n}`,
    description: null,
    labels: '[]',
    created_at: nowMs,
    updated_at: nowMs,
    version: 1,
  });
  const environment = (projectId: string, n: number) =>
    newEnvironment({ projectId, name: 'production', region: 'local', host: `p-${n}-production` }, nowMs);
  const insertProject = insertOf(database, 'project', project(0));
  const insertEnvironment = insertOf(database, 'environment', environment('', 0));
  database.exec('begin immediate');
  for (let n = 1; n <= count; n++) {
    nowMs++;
    const row = project(n);
    insertProject(row);
    insertEnvironment(environment(row.id, n));
  }
  database.exec('commit; pragma wal_checkpoint(truncate); analyze');
  database.close();
}
