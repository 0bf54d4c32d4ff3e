// Instances between deployments: replaced, scaled, and read from.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { ChangedMeanwhile } from '../../../src/db/guarded.ts';
import { insertInstance } from '../../../src/deployments/instance-queries.ts';
import { sharedApp } from '../../helpers/shared-app.ts';
import { Shop } from '../../helpers/shop.ts';
import { until } from '../../helpers/wait.ts';
import { image, instancesOf } from './deployments-fixture.ts';

const t = sharedApp({ tokenLimit: 1_000_000 }); // these tests poll more than a client should

const open = (settings?: object) => Shop.open(t.url, settings);

describe('keeping', () => {
  test('an environment that is deleted during a pass gets no instance', async () => {
    const row = {
      project_id: 'prj_gone',
      environment: 'production',
      revision: 1,
      region: 'local',
      host: null,
      port: null,
    };
    const times = { created_at: 0, state_since: 0 };
    const inserting = insertInstance(t.app.store.db, { id: 'ins_gone', state: 'starting', ...row, ...times });
    await assert.rejects(inserting, ChangedMeanwhile);
  });

  test('an instance that dies is replaced', async () => {
    const shop = await open({ replicas: 2, health_check: { interval_s: 1, unhealthy_after: 1 } });
    await shop.set({ variables: { STANDIN_EXIT_ON: '/exit' } });
    await shop.released(image(1));
    const ids = async () =>
      (await instancesOf(t.app.store.db, shop)).filter((row) => row.state === 'healthy').map((row) => row.id);
    const first = await ids();
    assert.equal(first.length, 2);
    await until('two others', async () => {
      const now = await ids();
      const isReplaced = now.length === 2 && now.every((id) => !first.includes(id));
      if (now.some((id) => first.includes(id))) await shop.visit(undefined, '/exit');
      return isReplaced;
    });
  });

  test('instances follow a changed number of replicas', async () => {
    const shop = await open();
    await shop.released(image(1));
    for (const replicas of [4, 1]) {
      await shop.set({ replicas });
      await until(`${replicas} instances`, async () => {
        const rows = await instancesOf(t.app.store.db, shop);
        return rows.length === replicas && rows.every((row) => row.state === 'healthy') ? true : undefined;
      });
    }
  });

  test('logs of a deployment’s instances', async () => {
    const shop = await open();
    const { id } = await shop.released(image(1));
    const { status, body } = await shop.api('GET', `/deployments/${id}/logs`);
    assert.equal(status, 200);
    assert.match(body.data[0].text, /started/);
    assert.match(body.data[0].instance, /^ins_/);
  });
});
