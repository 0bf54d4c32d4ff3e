// What the control plane and the routers do again and again, on an installation with many environments.
import { Watcher } from '../../src/alerts/watcher.ts';
import { databaseLeases } from '../../src/deployments/reconcile/environment-leases.ts';
import { Reconciler } from '../../src/deployments/reconcile/reconciler.ts';
import { createLoops } from '../../src/lib/loops.ts';
import { Regions } from '../../src/regions/regions.ts';
import { latencyBoundsMs } from '../../src/traffic/latency.ts';
import { loadAll, loadChanges } from '../../src/traffic/load-routes.ts';
import { bucketMs, bucketOf, TrafficCounter } from '../../src/traffic/measurements.ts';
import { defaultLimits } from '../../src/traffic/proxy/limits.ts';
import { RouteTable } from '../../src/traffic/proxy/route-table.ts';
import { RouterWatch } from '../../src/traffic/router-watch.ts';
import { storeMeasurements } from '../../src/traffic/traffic-queries.ts';
import { median } from '../lib/measure.ts';
import { note } from '../lib/report.ts';
import { costOf, reportCost } from './cost.ts';
import { bytesPerRow, calmEngine, environment, type Installation, idOf } from './scale-installation.ts';

const calmRounds = 3;
const roundMs = 10_000;

/**
 * One reconcile pass for every environment, or for as many as fit into the time; and if that is all of them, what they cost
 * while nothing changes. Gives the bytes of a lease.
 */
export async function measureIdlePasses(installation: Installation, withinMs: number): Promise<number> {
  const { app, count, server, clock, ids } = installation;
  const { db, seal } = app.store;
  const { log } = app;
  const loops = createLoops(log);
  const reconciler = new Reconciler({
    ...{ db, clock, ids, log, loops, seal, pullTimeoutS: 60, random: Math.random },
    regions: new Regions([{ name: 'local', engine: calmEngine(count) }], clock, log),
    logins: { find: async () => null },
    leases: databaseLeases(db, 'bench', clock),
    instancePorts: { first: 20_000, last: 29_999 },
    routers: new RouterWatch({ db, clock, leaseMs: 60_000 }),
    probe: async () => ({ ok: true }),
  });
  const passes = async () =>
    Number(
      (
        await db
          .selectFrom('environment_lease')
          .select((e) => e.fn.countAll().as('all'))
          .execute()
      )[0]!.all,
    );
  const cost = await costOf(server, async () => {
    reconciler.start();
    for (const endAt = Date.now() + withinMs; Date.now() < endAt && (await passes()) < count; ) {
      await new Promise((resolve) => setTimeout(resolve, 500));
    }
    return passes();
  });
  reportCost('idle passes of the reconciler', 'pass', cost);
  if (cost.units === count) {
    const calm = await costOf(server, async () => {
      await new Promise((resolve) => setTimeout(resolve, calmRounds * roundMs));
      return calmRounds * count;
    });
    reportCost('environments in which nothing changes, looked after together', 'environment and round', calm);
  }
  const leaseBytes = await bytesPerRow(app, 'environment_lease');
  await reconciler.stop();
  return leaseBytes;
}

export async function measureRouterLoad({ app, count, server }: Installation): Promise<void> {
  const { db } = app.store;
  const table = new RouteTable(defaultLimits, new TrafficCounter({ now: Date.now }));
  globalThis.gc?.();
  const before = process.memoryUsage().heapUsed;
  const cost = await costOf(server, async () => {
    let loaded = 0;
    table.beginLoad();
    for await (const page of loadAll(db, 'apps.example')) {
      for (const routes of page) table.replace(routes);
      loaded += page.length;
    }
    table.endLoad();
    return loaded;
  });
  reportCost('a router reads the whole table', 'environment', cost);
  globalThis.gc?.();
  const bytes = (process.memoryUsage().heapUsed - before) / count;
  if (globalThis.gc) note('memory of a router', `${(bytes / 1024).toFixed(1)} KiB`, 'for each environment');
  const change = await costOf(server, async () => {
    for (let i = 0; i < 100; i++) await loadChanges(db, 'apps.example', count - 1);
    return 100;
  });
  reportCost('a router reads one change', 'change', change);
  await table.destroy();
}

const latency = JSON.stringify(latencyBoundsMs.map((bound) => (bound <= 50 ? 10 : 0)).concat(0));

/** A tenth of the environments has visitors; two routers saw them, for as long as a rule looks back. */
export async function measureTraffic({ app, count, server, clock }: Installation): Promise<void> {
  const { db } = app.store;
  const busy = Math.floor(count / 10);
  const cost = await costOf(server, async () => {
    let stored = 0;
    for (let at = bucketOf(clock.now()) - 60_000; at <= clock.now(); at += bucketMs) {
      for (const router of ['a', 'b']) {
        for (let from = 0; from < busy; from += 1000) {
          const part = Array.from({ length: Math.min(1000, busy - from) }, (_, n) => ({
            ...{ project: idOf('prj', from + n), environment, revision: 1, at, requests: 100, errors: 1 },
            latency: JSON.parse(latency) as number[],
          }));
          await storeMeasurements(db, router, part);
          stored += part.length;
        }
      }
    }
    return stored;
  });
  reportCost('measurements are stored', 'row', cost);
}

export async function measureAlerts({ app, count, server, clock, ids }: Installation): Promise<void> {
  const { log, store } = app;
  const watcher = new Watcher({ db: store.db, clock, ids, log, loops: createLoops(log) });
  const evaluations = [];
  for (let i = 0; i < 3; i++) {
    evaluations.push(
      await costOf(server, async () => {
        await watcher.evaluateDue();
        return count;
      }),
    );
  }
  const typical = evaluations.sort((a, b) => a.seconds - b.seconds)[1]!;
  reportCost('evaluating all alert rules, two for each', 'environment', typical);
  note(
    '… and one evaluation in all',
    `${median(evaluations.map(({ seconds }) => seconds)).toFixed(1)} s`,
    'every five seconds',
  );
}
