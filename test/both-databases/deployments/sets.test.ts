// The sets of an environment: one for each revision that runs, with a row for as long as its engine may have it.
import assert from 'node:assert/strict';
import { after, describe, test } from 'node:test';
import { pino } from 'pino';
import { readConfig } from '../../../src/config.ts';
import type { AnyDb } from '../../../src/db/dialect.ts';
import { migrate, migrations } from '../../../src/db/migrate.ts';
import { openDatabase } from '../../../src/db/open-database.ts';
import { Orphans } from '../../../src/deployments/reconcile/orphans.ts';
import { runSets } from '../../../src/engines/engine.ts';
import { createStandinEngine } from '../../../src/engines/standin/standin.ts';
import { RouterWatch } from '../../../src/traffic/router-watch.ts';
import { isolatedEnv } from '../../helpers/app.ts';
import { specOf, startReady } from '../../helpers/instances.ts';
import { sharedApp } from '../../helpers/shared-app.ts';
import { Shop } from '../../helpers/shop.ts';
import { until } from '../../helpers/wait.ts';
import { image } from './deployments-fixture.ts';

const t = sharedApp({ tokenLimit: 1_000_000 });

const setsOf = (project: string) =>
  t.app.store.db.selectFrom('instance_set').selectAll().where('project_id', '=', project).orderBy('id').execute();

describe('sets', () => {
  test('each revision has its own, which is dropped once the last of its instances is gone', async () => {
    const shop = await Shop.open(t.url, { replicas: 2, drain_s: 0 });
    await shop.released(image(1));
    const [first, ...none] = await setsOf(shop.project);
    assert.deepEqual([first?.revision, first?.region, none], [1, 'local', []]);
    await shop.released(image(2));
    await until('the first to go', async () => (await setsOf(shop.project)).length === 1);
    const [second] = await setsOf(shop.project);
    assert.deepEqual([second?.revision, second?.id === first?.id], [2, false]);
  });

  test('that of a revision that failed is dropped, also where nothing ever ran', async () => {
    const shop = await Shop.open(t.url, { variables: { STANDIN_EXIT_AFTER_S: '0.01' } });
    const { id } = await shop.deploy(image(1));
    await shop.reaches(id, 'failed');
    await until('none to be left', async () => (await setsOf(shop.project)).length === 0);
  });

  test('one without a row is dropped once nothing runs in it that has no row either', async () => {
    const { db } = t.app.store;
    const shop = await Shop.open(t.url);
    await shop.released(image(1));
    const [{ id: known } = { id: '' }] = await setsOf(shop.project);
    const { id: instance } = await db
      .selectFrom('instance')
      .select('id')
      .where('project_id', '=', shop.project)
      .executeTakeFirstOrThrow();
    const dropped: { id: string; running: number }[] = [];
    const single = runSets(createStandinEngine());
    after(() => single.close());
    const engine = {
      ...single,
      list: async () => (await single.list()).filter(({ id }) => id === spec.id),
      sets: async () => [known, instance, 'set_orphan'],
      drop: async (id: string) => void dropped.push({ id, running: (await engine.list()).length }),
    };
    const spec = await specOf(single, { image: image(1), variables: {} });
    await startReady(single, spec);
    const routers = new RouterWatch({ db, clock: { now: () => 1 }, leaseMs: 5000 });
    const region = { name: 'local', engine, available: true, lastCheckedAt: null };
    const orphans = new Orphans();
    const search = () => orphans.remove({ db, log: pino({ level: 'silent' }), routers }, region);
    await until('the orphaned set to be dropped', async () => {
      await search();
      return dropped.length > 0;
    });
    assert.deepEqual(dropped, [{ id: 'set_orphan', running: 0 }]);
  });
});

describe('before there were sets', () => {
  async function insertOldRows(db: AnyDb): Promise<void> {
    const times = { created_at: 1, updated_at: 1, version: 1 };
    await db.insertInto('account').values({ id: 'acc_1', name: 'a', created_at: 1 }).execute();
    const project = { id: 'prj_1', account_id: 'acc_1', name: 'p', slug: 'p', labels: '[]', ...times };
    await db.insertInto('project').values(project).execute();
    const numbers = { replicas: 1, port: 8080, auto_rollback: 1, retention: 10, drain_s: 1 };
    const json = { variable_names: '[]', health_check: '{}', canary: '{}', resources: '{}' };
    const environment = { project_id: 'prj_1', name: 'e', region: 'local', host: 'e', ...json, ...numbers, ...times };
    await db.insertInto('environment').values(environment).execute();
    const of = { project_id: 'prj_1', environment: 'e', region: 'local', state: 'healthy', state_since: 5 };
    for (const [id, revision] of [
      ['ins_b', 1],
      ['ins_a', 1],
      ['ins_c', 2],
    ] as const) {
      await db
        .insertInto('instance')
        .values({ ...of, id, revision, created_at: 5 })
        .execute();
    }
  }

  test('the instances of a revision become one', async () => {
    const isolated = await isolatedEnv({ isMigrated: false });
    const { databaseUrl, dataDir } = readConfig(isolated.env, false);
    const { db, dialect, close } = await openDatabase({ url: databaseUrl, dataDir, onConnectionLost: () => {} });
    try {
      const before = migrations.findIndex(({ name }) => name === 'instance-sets');
      await migrate(db, dialect, { known: migrations.slice(0, before) });
      await insertOldRows(db);
      await migrate(db, dialect);
      const rows = await db.selectFrom('instance_set').select(['id', 'revision', 'region']).orderBy('id').execute();
      assert.deepEqual(
        rows.map(({ id, revision, region }) => [id, Number(revision), region]),
        [
          ['set_a', 1, 'local'],
          ['set_c', 2, 'local'],
        ],
      );
    } finally {
      await close();
      await isolated.clean();
    }
  });
});
