// Migrations take as long as they need, and processes wait for the one that migrates.
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { after, before, test } from 'node:test';
import { sql } from 'kysely';
import pg from 'pg';
import { readConfig } from '../../src/config.ts';
import type { Migration } from '../../src/db/dialect.ts';
import { latestVersion, migrate, migrations } from '../../src/db/migrate.ts';
import { openDatabase } from '../../src/db/open-database.ts';
import { openStore } from '../../src/store.ts';
import { call, isolatedEnv } from '../helpers/app.ts';
import { cli, startCli } from '../helpers/cli.ts';
import { createDatabase, startPostgres, type TestPostgres } from '../helpers/postgres.ts';
import { startService } from '../helpers/service.ts';
import { until } from '../helpers/wait.ts';

const waits = /Another process is working on the database\. Waiting for it/;

let server: TestPostgres;
let isolated: Awaited<ReturnType<typeof isolatedEnv>>;
before(async () => {
  server = await startPostgres();
  isolated = await isolatedEnv({ isMigrated: false });
});
after(async () => {
  await server?.stop();
  await isolated?.clean();
});

test('a migration may take longer than any other statement, and who comes second waits for it and does nothing', async () => {
  const { url } = await createDatabase(server.url);
  const limited = `${url}?statement_timeout=300`;
  const slow: Migration = { name: 'slow', up: async (db) => void (await sql`select pg_sleep(2.5)`.execute(db)) };
  let waited = 0;
  const run = async () => {
    const database = await openDatabase({ url: limited, dataDir: '', onConnectionLost: () => {}, unlimited: true });
    const known = [...migrations, slow];
    return migrate(database.db, 'postgres', { known, onWait: () => waited++ }).finally(database.close);
  };
  const [one, two] = await Promise.all([run(), run()]);
  assert.deepEqual([one.applied.length, two.applied.length].toSorted(), [0, latestVersion + 1]);
  assert.deepEqual([one.to, two.to, waited], [latestVersion + 1, latestVersion + 1, 1]);
});

test('a start and sluice migrate both wait for a process that migrates, and say so', async () => {
  const { url } = await createDatabase(server.url);
  const env = { ...isolated.env, SLUICE_DATABASE_URL: `${url}?statement_timeout=300`, SLUICE_LOG_LEVEL: 'warn' };
  const other = new pg.Client({ connectionString: url });
  await other.connect();
  await other.query('select pg_advisory_lock(7310391)');
  const service = startService(env);
  const command = startCli(['migrate'], env);
  await command.says(waits);
  const line = /waiting for another process, which is migrating the database/;
  await until('the line', () => line.test(service.output()));
  await other.end();
  const { code, stdout, stderr } = await command.ended;
  assert.equal(code, 0, stderr);
  assert.match(stdout, new RegExp(`The database is at version ${latestVersion}`));
  assert.equal((await call(await service.url, 'GET', '/readyz')).status, 200);
  service.child.kill('SIGTERM');
  assert.deepEqual(await service.exited, [0, null]);
});

test('the limits of all other statements stay as they are', async () => {
  const { url } = await createDatabase(server.url);
  const store = await openStore(readConfig({ ...isolated.env, SLUICE_DATABASE_URL: url }, false), () => {});
  const { rows } = await sql<{ statement_timeout: string }>`show statement_timeout`.execute(store.db);
  assert.equal(rows[0]!.statement_timeout, '15s');
  await store.close();
});

test('on SQLite: sluice migrate does it, waits for a writer, and does nothing below a service that runs', async () => {
  const { SLUICE_DATABASE_URL: _, ...env } = isolated.env;
  const first = await cli(['migrate', '--json'], env);
  assert.equal(first.code, 0, first.stderr);
  const { from, to, applied } = JSON.parse(first.stdout);
  assert.deepEqual([from, to, applied.length], [0, latestVersion, latestVersion]);

  const writer = new DatabaseSync(join(isolated.dataDir, 'sluice.db'));
  writer.exec('begin immediate');
  const second = startCli(['migrate'], env);
  await second.says(waits);
  writer.close();
  assert.equal((await second.ended).stdout, `The database is at version ${latestVersion} already.\n`);

  const service = startService(env);
  await service.url;
  const third = await cli(['migrate'], env);
  assert.deepEqual([third.code, /Another Sluice runs on/.test(third.stderr)], [78, true]);
  service.child.kill('SIGTERM');
  await service.exited;
});
