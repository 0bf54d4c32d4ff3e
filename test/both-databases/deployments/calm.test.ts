// An environment in which nothing changes gets no passes; what changes all the same is found without a signal.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  databaseLeases,
  type EnvironmentLeases,
  onlyProcess,
} from '../../../src/deployments/reconcile/environment-leases.ts';
import { Reconciler } from '../../../src/deployments/reconcile/reconciler.ts';
import { runSets } from '../../../src/engines/engine.ts';
import { createStandinEngine } from '../../../src/engines/standin/standin.ts';
import { createIds } from '../../../src/lib/ids.ts';
import { createLog } from '../../../src/lib/log.ts';
import { createLoops } from '../../../src/lib/loops.ts';
import { Regions } from '../../../src/regions/regions.ts';
import { RouterWatch } from '../../../src/traffic/router-watch.ts';
import { onPostgres } from '../../helpers/app.ts';
import { sharedApp } from '../../helpers/shared-app.ts';
import { Shop } from '../../helpers/shop.ts';
import { until } from '../../helpers/wait.ts';
import { image, instancesOf } from './deployments-fixture.ts';

/** Ten seconds are two and a half. */
const clock = { now: () => Date.now(), monotonic: () => performance.now() * 4 };
const t = sharedApp({ tokenLimit: 1_000_000, env: { SLUICE_ROLES: 'api' } });
const standin = createStandinEngine();
let reconciler: Reconciler;
let passes = 0;
let renewals = 0;

function counted(leases: EnvironmentLeases): EnvironmentLeases {
  return {
    ...leases,
    hold(key) {
      passes++;
      return leases.hold(key);
    },
    renew(keys, write) {
      renewals++;
      return leases.renew(keys, write);
    },
  };
}

function start(): void {
  const { db, seal } = t.app.store;
  const log = createLog({ level: 'silent', format: 'json' });
  const regions = new Regions([{ name: 'local', engine: runSets(standin) }], clock, log);
  reconciler = new Reconciler({
    ...{ db, seal, clock, log, regions },
    ids: createIds(clock),
    loops: createLoops(log),
    logins: { find: async () => null },
    leases: counted(onPostgres ? databaseLeases(db, 'one', clock) : onlyProcess(db)),
    routers: new RouterWatch({ db, clock, leaseMs: 60_000 }),
    pullTimeoutS: 60,
    instancePorts: { first: 20_000, last: 29_999 },
    random: Math.random,
  });
  reconciler.start();
}

test('an environment in which nothing changes', async (context) => {
  start();
  context.after(async () => {
    await reconciler.stop();
    await standin.close();
  });
  const { db } = t.app.store;
  const shop = await Shop.open(t.url);
  await shop.released(image(1));
  const rows = () => instancesOf(db, shop);
  const healthy = (count: number) =>
    until(`${count} healthy instances`, async () => {
      const all = await rows();
      return all.length === count && all.every(({ state }) => state === 'healthy') && all;
    });
  const calm = async () => {
    const before = renewals;
    await until('it to be calm', () => renewals > before);
  };
  const [first] = await healthy(1);
  await calm();

  const before = { passes, renewals };
  const checkedAt = async () => {
    const query = db.selectFrom('instance').select('checked_at').where('project_id', '=', shop.project);
    return (await query.executeTakeFirstOrThrow()).checked_at!;
  };
  const checked = await checkedAt();
  await until('its health check to be saved', async () => (await checkedAt()) > checked, 60_000);
  await until('four rounds', () => renewals >= before.renewals + 4, 60_000);
  assert.ok(passes - before.passes <= 1, `${passes - before.passes} passes in ${renewals - before.renewals} rounds`);

  // As if the signal of this change had got lost.
  await db
    .updateTable('environment')
    .set((e) => ({ replicas: 2, version: e('version', '+', 1) }))
    .where('project_id', '=', shop.project)
    .execute();
  await healthy(2);

  await calm();
  await standin.stop(first!.id, 0);
  await until('another in its place', async () => (await healthy(2)).every(({ id }) => id !== first!.id), 60_000);
});
