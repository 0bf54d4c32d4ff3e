// Commits a second of one SQLite connection with the settings of the service: one row, one transaction, one fsync.
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';

export function rawCommitsPerSecond(dir: string, seconds: number): number {
  const database = new DatabaseSync(join(dir, 'raw.db'));
  database.exec('pragma journal_mode = wal; pragma synchronous = full');
  database.exec(
    'create table if not exists project (id integer primary key, name text not null, created_at int not null)',
  );
  const insert = database.prepare('insert into project (name, created_at) values (?, ?)');
  const endAt = performance.now() + seconds * 1000;
  const startedAt = performance.now();
  let count = 0;
  while (performance.now() < endAt) {
    database.exec('begin immediate');
    insert.run(`Project ${count}`, Date.now());
    database.exec('commit');
    count++;
  }
  const rate = count / ((performance.now() - startedAt) / 1000);
  database.close();
  return rate;
}
