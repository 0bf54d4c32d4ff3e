// Rollouts while the clock of the machine is corrected.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sharedApp } from '../../helpers/shared-app.ts';
import { Shop } from '../../helpers/shop.ts';
import { until } from '../../helpers/wait.ts';
import { image, instancesOf } from './deployments-fixture.ts';

let offMs = 0;
const clock = { now: () => Date.now() + offMs, steady: () => performance.now() };
const t = sharedApp({ tokenLimit: 1_000_000, clock });

test('set back by an hour: looks at environments go on without being asked for', async () => {
  const { db } = t.app.store;
  const shop = await Shop.open(t.url, { canary: { advance: 'manual', bake_s: 600 } });
  await shop.released(image(1));
  const { id } = await shop.deploy(image(2), { strategy: 'canary', canary_percent: 50 });
  await shop.reaches(id, 'canary');
  offMs = -3600_000;
  // Nothing tells of this change, so only a look that was planned anyway can see it.
  const change = db.updateTable('environment').set({ replicas: 3 }).where('project_id', '=', shop.project);
  await change.execute();
  await until('more instances', async () => {
    const rows = await instancesOf(db, shop);
    return rows.length > 2 && rows.every(({ state }) => state === 'healthy');
  });
  await shop.api('POST', `/deployments/${id}/abort`);
  assert.equal((await shop.reaches(id, 'canceled')).state, 'canceled');
});
