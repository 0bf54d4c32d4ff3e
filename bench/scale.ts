// npm run bench -- scale [environments]: what an installation of 100,000 environments on one PostgreSQL costs, part by part.
// The rows are written in bulk; the queries and loops are the service's own. docs/scale.md says what follows from it.
// PostgreSQL and this process share the machine, and PostgreSQL does not wait for its disk (fsync is off).
import { Schedule } from '../src/deployments/reconcile/schedule.ts';
import { note } from './lib/report.ts';
import { measureDeliveries, measureEvents, measureRetention } from './scale/events.ts';
import { environment, idOf } from './scale/fill.ts';
import { bytesPerRow, type Installation, openInstallation } from './scale/installation.ts';
import { measureAlerts, measureIdleLooks, measureRouterLoad, measureTraffic } from './scale/loops.ts';
import { measureRollouts } from './scale/rollouts.ts';

const count = Number(process.argv.slice(3).find((word) => /^\d+$/.test(word)) ?? 100_000);
const idleTables = ['project', 'environment', 'revision', 'deployment', 'instance', 'routing'];

async function measureBytes({ app }: Installation, leaseBytes: number): Promise<void> {
  const bytes = new Map<string, number>();
  for (const table of [...idleTables, 'deployment_timeline', 'alert_rule'])
    bytes.set(table, await bytesPerRow(app, table));
  const one = (table: string) => bytes.get(table)!;
  const idle = idleTables.reduce((sum, table) => sum + one(table), 0);
  const all = idle + 6 * one('deployment_timeline') + 2 * one('alert_rule') + leaseBytes;
  note(
    'bytes of an environment',
    all.toFixed(0),
    [...bytes].map(([name, size]) => `${name} ${size.toFixed(0)}`).join(', '),
  );
}

async function tellBytes({ app }: Installation, ...tables: string[]): Promise<void> {
  for (const table of tables) note(`bytes of a row: ${table}`, (await bytesPerRow(app, table)).toFixed(0));
}

/** Choosing what is due, a round of all environments: pure, no database. */
function measureSchedule(): void {
  const schedule = new Schedule();
  for (let n = 0; n < count; n++) schedule.enqueue({ projectId: idOf('prj', n), environment }, n);
  const startedAt = performance.now();
  let taken = 0;
  while (schedule.isAnyDue(count)) {
    const keys = schedule.take(count, 64);
    for (const key of keys) schedule.plan(key, count + 10_000);
    taken += keys.length;
  }
  const ms = performance.now() - startedAt;
  note('choosing what is due, once for all', `${ms.toFixed(0)} ms`, `${((ms * 1000) / taken).toFixed(1)} µs each`);
}

const startedAt = performance.now();
const since = () => `${((performance.now() - startedAt) / 1000).toFixed(0)} s`;
const installation = await openInstallation(count);
try {
  note(`${count.toLocaleString('en')} environments written`, since());
  measureSchedule();
  await measureRouterLoad(installation);
  await measureBytes(installation, await measureIdleLooks(installation, 30_000));
  await measureTraffic(installation);
  await measureAlerts(installation);
  await measureEvents(installation, 5000);
  await measureDeliveries(installation, 50_000);
  await tellBytes(installation, 'traffic', 'event', 'delivery', 'attempt');
  await measureRetention(installation, 20_000);
  await measureRollouts(installation, 10);
  note('all of this', since());
} finally {
  await installation.close();
}
process.exit(0);
