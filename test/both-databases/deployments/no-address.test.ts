// An instance that runs, but cannot be reached: its engine says no address of it.
import { after, test } from 'node:test';
import { onlyProcess } from '../../../src/deployments/reconcile/environment-leases.ts';
import { Reconciler } from '../../../src/deployments/reconcile/reconciler.ts';
import { type Engine, runSets } from '../../../src/engines/engine.ts';
import { createStandinEngine } from '../../../src/engines/standin/standin.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import { createIds } from '../../../src/lib/ids.ts';
import { createLog } from '../../../src/lib/log.ts';
import { createLoops } from '../../../src/lib/loops.ts';
import { Regions } from '../../../src/regions/regions.ts';
import { RouterWatch } from '../../../src/traffic/router-watch.ts';
import { sharedApp } from '../../helpers/shared-app.ts';
import { Shop } from '../../helpers/shop.ts';
import { until } from '../../helpers/wait.ts';
import { image, instancesOf } from './deployments-fixture.ts';

const unreachable = new Set<string>();
/** Those whose engine replaces what ran, and cannot start it. */
const replaced = new Set<string>();
const engine = runSets(createStandinEngine());
const seen: Engine = {
  ...engine,
  list: async () =>
    (await engine.list()).map((one) => {
      if (replaced.has(one.id)) return { ...one, state: 'created', address: null };
      return unreachable.has(one.id) ? { ...one, address: null } : one;
    }),
};

const log = createLog({ level: 'silent', format: 'json' });
let reconciler: Reconciler;
// Its own reconciler rests: the test brings one, with an engine of its own.
const t = sharedApp({ tokenLimit: 1_000_000, env: { SLUICE_ROLES: 'api' } }, ({ app }) => {
  const { db, seal } = app.store;
  reconciler = new Reconciler({
    db,
    seal,
    ids: createIds(systemClock),
    clock: systemClock,
    log,
    loops: createLoops(log),
    regions: new Regions([{ name: 'local', engine: seen }], systemClock, log),
    leases: onlyProcess(db),
    logins: { find: async () => null },
    routers: new RouterWatch({ db, clock: systemClock, leaseMs: 60_000 }),
    pullTimeoutS: 60,
    instancePorts: { first: 20_000, last: 29_999 },
    random: Math.random,
  });
  reconciler.start();
});
after(async () => {
  await reconciler?.stop();
  await engine.close();
});

for (const [what, lose] of [
  ['one that runs on', unreachable],
  ['one that its engine replaces in vain', replaced],
] as const) {
  test(`${what} is given up after the time that it has to become healthy, and replaced`, async () => {
    const { db } = t.app.store;
    const shop = await Shop.open(t.url, { health_check: { interval_s: 1, healthy_after: 1, start_timeout_s: 5 } });
    await shop.released(image(1));
    const [lost] = await instancesOf(db, shop);
    lose.add(lost!.id);
    await shop.set({ replicas: 1 }); // which looks at once
    await until('another instance in its place', async () => {
      const rows = await instancesOf(db, shop);
      return rows.length === 1 && rows[0]!.id !== lost!.id && rows[0]!.state === 'healthy';
    });
  });
}
