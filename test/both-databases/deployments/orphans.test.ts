// Instances without a row: they are stopped, but not while a router may still send them requests.
import assert from 'node:assert/strict';
import { after, beforeEach, test } from 'node:test';
import { pino } from 'pino';
import { Orphans } from '../../../src/deployments/reconcile/orphans.ts';
import { runSets } from '../../../src/engines/engine.ts';
import { createStandinEngine } from '../../../src/engines/standin/standin.ts';
import { RouterWatch } from '../../../src/traffic/router-watch.ts';
import { markRoutingChanged } from '../../../src/traffic/traffic-queries.ts';
import { specOf, startReady } from '../../helpers/instances.ts';
import { sharedApp } from '../../helpers/shared-app.ts';

/** Neither routes nor reconciles. */
const t = sharedApp({ env: { SLUICE_ROLES: 'api' } });
const engine = runSets(createStandinEngine());
after(() => engine.close());

const orphans = new Orphans();
let routers: RouterWatch;
let nowMs = 1_000_000;
const leaseMs = 5000;

beforeEach(async () => {
  const { db } = t.app.store;
  await db.deleteFrom('router').execute();
  routers = new RouterWatch({ db, clock: { now: () => nowMs }, leaseMs });
  await startReady(engine, await specOf(engine, { image: 'registry.example/shop:1', variables: {} }));
});

const search = () => {
  const { db } = t.app.store;
  const region = { name: 'local', engine, available: true, lastCheckedAt: null };
  return orphans.remove({ db, log: pino({ level: 'silent' }), routers }, region);
};
const running = async () => (await engine.list()).length;

const changeTable = () =>
  t.app.store.db
    .transaction()
    .execute((tx) => markRoutingChanged(tx, { projectId: 'prj_orphans', environment: 'production' }));

async function addRouter(version: number): Promise<void> {
  await t.app.store.db.insertInto('router').values({ id: 'behind', version, beat: 1 }).execute();
}

test('without any router they are stopped at once', async () => {
  assert.equal(await search(), 0);
  assert.equal(await running(), 0);
});

test('one is stopped once every router has a table without it; later changes do not matter', async () => {
  const { db } = t.app.store;
  await addRouter(await changeTable());
  const gone = await changeTable();
  assert.equal(await search(), 1);
  await changeTable();
  assert.equal(await search(), 1);
  assert.equal(await running(), 1);
  await db.updateTable('router').set({ version: gone }).execute();
  assert.equal(await search(), 0);
  assert.equal(await running(), 0);
});

test('a router whose lease has ended is not waited for', async () => {
  await addRouter(await changeTable());
  await changeTable();
  assert.equal(await search(), 1);
  for (let passed = 0; passed <= leaseMs; passed += 1000) {
    nowMs += 1000;
    await search();
  }
  assert.equal(await running(), 0);
});
