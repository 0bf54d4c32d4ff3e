// Revisions from before health checks and resources were part of them go on with those of their environment.
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { readConfig } from '../../../src/config.ts';
import type { AnyDb } from '../../../src/db/dialect.ts';
import { migrate, migrations } from '../../../src/db/migrate.ts';
import { openDatabase } from '../../../src/db/open-database.ts';
import { isolatedEnv } from '../../helpers/app.ts';

const isolated = await isolatedEnv({ isMigrated: false });
after(() => isolated.clean());

async function insertOldRows(db: AnyDb): Promise<void> {
  const times = { created_at: 1, updated_at: 1, version: 1 };
  await db.insertInto('account').values({ id: 'acc_1', name: 'a', created_at: 1 }).execute();
  const project = { id: 'prj_1', account_id: 'acc_1', name: 'p', slug: 'p', labels: '[]', ...times };
  await db.insertInto('project').values(project).execute();
  const numbers = { replicas: 1, port: 8080, auto_rollback: 1, retention: 10, drain_s: 1 };
  for (const name of ['production', 'staging']) {
    const json = { variable_names: '[]', health_check: `{"path":"/${name}"}`, canary: '{}' };
    await db
      .insertInto('environment')
      .values({ project_id: 'prj_1', name, region: 'local', host: name, ...json, ...numbers, ...times })
      .execute();
    const of = { project_id: 'prj_1', environment: name, deployment_id: 'dpl_1', image: 'shop', port: 8080 };
    for (const number of [1, 2])
      await db
        .insertInto('revision')
        .values({ ...of, number, state: 'active', traffic_percent: 0, created_at: 1 })
        .execute();
  }
}

test('each has the health check of its environment, and the resources that every instance had', async () => {
  const { databaseUrl, dataDir } = readConfig(isolated.env, false);
  const { db, dialect, close } = await openDatabase({ url: databaseUrl, dataDir, onConnectionLost: () => {} });
  try {
    const before = migrations.findIndex(({ name }) => name === 'revision-settings');
    await migrate(db, dialect, { known: migrations.slice(0, before) });
    await insertOldRows(db);
    await migrate(db, dialect);
    const resources = '{"memory_mb":512,"cpus":1}';
    const revisions = await db
      .selectFrom('revision')
      .select(['environment', 'number', 'health_check', 'resources'])
      .orderBy('environment')
      .orderBy('number')
      .execute();
    assert.deepEqual(
      revisions.map((row) => ({ ...row })),
      ['production', 'staging'].flatMap((environment) =>
        [1, 2].map((number) => ({ environment, number, health_check: `{"path":"/${environment}"}`, resources })),
      ),
    );
    const environments = await db.selectFrom('environment').select('resources').execute();
    assert.deepEqual(
      environments.map((row) => row.resources),
      [resources, resources],
    );
  } finally {
    await close();
  }
});
