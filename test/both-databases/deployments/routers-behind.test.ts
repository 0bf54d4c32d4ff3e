// "It serves all traffic" is said when the routers do so: after that no visit sees what was there before.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { subscribe } from '../../../src/signals/signals.ts';
import { sharedApp } from '../../helpers/shared-app.ts';
import { Shop } from '../../helpers/shop.ts';
import { until } from '../../helpers/wait.ts';

const t = sharedApp({ tokenLimit: 1_000_000 });
const image = 'registry.example/team/web:v1';

/** A router that has the table as it was at a version, and lives. */
async function addRouter(version: number) {
  const { db } = t.app.store;
  const id = `behind-${version}`;
  await db.insertInto('router').values({ id, version, beat: 1 }).execute();
  return {
    moveTo: (to: number) => db.updateTable('router').set({ version: to }).where('id', '=', id).execute(),
    leave: () => db.deleteFrom('router').where('id', '=', id).execute(),
  };
}

test('a deployment succeeds once every router has its table', async (context) => {
  const shop = await Shop.open(t.url);
  const router = await addRouter(0);
  context.after(() => router.leave());
  const { id } = await shop.deploy(image);
  const serves = async () => (await shop.visit()).status === 200;
  await shop.reaches(id, 'promoting');
  await until('visits at the router that has the table', serves);
  assert.equal((await shop.deployment(id)).state, 'promoting');
  await router.moveTo(Number.MAX_SAFE_INTEGER);
  const { timeline } = await shop.reaches(id, 'succeeded');
  assert.equal(timeline.at(-1)!.message, 'It serves all traffic.');
});

test('a router that hangs is waited for ten seconds, and the timeline says so', async (context) => {
  const shop = await Shop.open(t.url);
  const router = await addRouter(1);
  context.after(() => router.leave());
  const { id } = await shop.deploy(image);
  const { timeline } = await shop.reaches(id, 'succeeded');
  assert.match(timeline.at(-1)!.message, /except at routers that did not take it over within 10 s/);
  const [began, ended] = timeline.slice(-2).map(({ at }) => Date.parse(at)) as [number, number];
  assert.ok(ended - began > 9000, `${ended - began} ms`);
});

test('what waits for a router is told when it has another table, and not at every beat', async (context) => {
  const { db } = t.app.store;
  const shop = await Shop.open(t.url);
  let told = 0;
  context.after(subscribe(db, 'routers', () => told++));
  await shop.released(image);
  assert.ok(told > 0);
  const beatOf = async () =>
    (await db.selectFrom('router').select('beat').where('id', 'like', 'run%').executeTakeFirstOrThrow()).beat;
  const areQuiet = async () => {
    const [before, beat] = [told, await beatOf()];
    await until('two beats', async () => (await beatOf()) >= beat + 2);
    return told === before;
  };
  // The end of the deployment is one more table.
  await until('beats without a signal', areQuiet);
});
