// A database from before there were alerts: its environments get the rules that new ones have, and keep their port.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { listAlertRules, presentAlertRule } from '../../../src/alerts/alert-rule-queries.ts';
import { type AnyDb, columnsFor } from '../../../src/db/dialect.ts';
import { migrate } from '../../../src/db/migrate.ts';
import { foundation } from '../../../src/db/migrations/0001-foundation.ts';
import { deployments } from '../../../src/db/migrations/0002-deployments.ts';
import { webhooks } from '../../../src/db/migrations/0003-webhooks.ts';
import { openDatabase } from '../../../src/db/open-database.ts';
import { newEnvironment } from '../../../src/environments/change-environment.ts';
import { isolatedEnv } from '../../helpers/app.ts';

test('environments that are there already get their two rules and keep their port', async () => {
  const { env, dataDir, clean } = await isolatedEnv({ isMigrated: false });
  const database = await openDatabase({ url: env.SLUICE_DATABASE_URL ?? null, dataDir, onConnectionLost() {} });
  const { db, dialect } = database;
  const old: AnyDb = db;
  await old.transaction().execute(async (tx) => {
    await tx.schema
      .createTable('migration')
      .addColumn('version', 'integer', (c) => c.primaryKey())
      .addColumn('name', 'text', (c) => c.notNull())
      .execute();
    for (const [index, migration] of [foundation, deployments, webhooks].entries()) {
      await migration.up(tx, columnsFor(dialect));
      await tx
        .insertInto('migration')
        .values({ version: index + 1, name: migration.name })
        .execute();
    }
  });
  const [id, account_id] = ['prj_01k9xw3v5qfk2t8m7c4b6d9e0h', 'acc_01k9xw3v5qfk2t8m7c4b6d9e0h'];
  await db.insertInto('account').values({ id: account_id, name: 'a', created_at: 1 }).execute();
  const project = { id, account_id, name: 'Shop', slug: 'shop', description: null, labels: '[]', next_sequence: 1 };
  await old
    .insertInto('project')
    .values({ ...project, created_at: 1, updated_at: 1, version: 1 })
    .execute();
  for (const name of ['production', 'staging']) {
    const row = newEnvironment({ projectId: id, name, region: 'local', host: `shop-${name}` }, 1);
    const { port_set, resources, health_state, health_since, health_reason, deleted_at, ...known } = row;
    await old.insertInto('environment').values(known).execute();
  }
  await migrate(db, dialect);
  for (const environment of ['production', 'staging']) {
    const rules = await listAlertRules(db, id, { environment }, { limit: 100, after: null });
    assert.deepEqual(
      rules.map(presentAlertRule).map(({ id: rule, name, metric, threshold, on_canary, enabled }) => {
        assert.match(rule, /^rul_[0-9a-z]{26}$/);
        return [name, metric, threshold, on_canary, enabled];
      }),
      [
        ['Instances', 'healthy_instances', 1, 'none', true],
        ['Errors', 'error_rate', 0.05, 'abort', true],
      ],
    );
  }
  const kept = await db
    .selectFrom('environment')
    .select(['port', 'port_set', 'health_state', 'health_since'])
    .execute();
  const asBefore = { port: 8080, port_set: 1, health_state: 'idle', health_since: 1 };
  for (const row of kept) assert.deepEqual({ ...row }, asBefore);
  await database.close();
  await clean();
});
