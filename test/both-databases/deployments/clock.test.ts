// Rollouts while the clock of the machine is corrected.
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { sharedApp } from '../../helpers/shared-app.ts';
import { Shop } from '../../helpers/shop.ts';
import { until } from '../../helpers/wait.ts';
import { image, instancesOf } from './deployments-fixture.ts';

const hourMs = 3600_000;
let offMs = 0;
const clock = { now: () => Date.now() + offMs, monotonic: () => performance.now() };
const t = sharedApp({ tokenLimit: 1_000_000, clock });

async function canaryOf(settings: object): Promise<{ shop: Shop; id: string }> {
  const shop = await Shop.open(t.url, { canary: { advance: 'manual', bake_s: 600, ...settings } });
  await shop.released(image(1));
  const { id } = await shop.deploy(image(2), { strategy: 'canary', canary_percent: 50 });
  await shop.reaches(id, 'canary');
  return { shop, id };
}

/** Nothing tells of this change, so only a pass that was planned anyway can see it. */
async function lookedAt(shop: Shop, replicas: number): Promise<void> {
  const { db } = t.app.store;
  await db.updateTable('environment').set({ replicas }).where('project_id', '=', shop.project).execute();
  await until('more instances', async () => {
    const rows = await instancesOf(db, shop);
    return rows.length > replicas && rows.every(({ state }) => state === 'healthy');
  });
}

async function aborted(shop: Shop, id: string): Promise<void> {
  await shop.api('POST', `/deployments/${id}/abort`);
  assert.equal((await shop.reaches(id, 'canceled')).state, 'canceled');
}

after(() => {
  offMs = 0;
});

test('set back by an hour: looks at environments go on without being asked for', async () => {
  const { shop, id } = await canaryOf({});
  offMs = -hourMs;
  await lookedAt(shop, 2);
  await aborted(shop, id);
});

test('set back by an hour: what was counted before that does not hide what the canary answers', async () => {
  offMs = hourMs;
  const shop = await Shop.open(t.url, { canary: { advance: 'manual', bake_s: 600 } });
  await shop.released(image(1));
  const load = shop.load(2);
  await until('requests by the clock that is ahead', async () => {
    const rows = t.app.store.db.selectFrom('traffic').select('at').where('project_id', '=', shop.project);
    return (await rows.execute()).length > 0;
  });
  offMs = 0;
  const { id } = await shop.deploy(image(2), { strategy: 'canary', canary_percent: 50 });
  await shop.reaches(id, 'canary');
  await until('its requests', async () => (await shop.deployment(id)).canary!.canary.requests >= 30);
  await load.stop();
  await aborted(shop, id);
});

test('set forward by an hour: a canary that waits for people still has its time', async () => {
  offMs = 0;
  const { shop, id } = await canaryOf({ approval_timeout_s: 600 });
  assert.equal((await shop.api('POST', `/deployments/${id}/pause`)).status, 200);
  offMs = hourMs;
  await lookedAt(shop, 2);
  assert.equal((await shop.deployment(id)).canary?.phase, 'paused');
  await aborted(shop, id);
});

test('a deadline that a clock ten hours ahead has written is brought back: the rollout ends in time', async () => {
  offMs = 0;
  const { shop, id } = await canaryOf({ approval_timeout_s: 60 });
  assert.equal((await shop.api('POST', `/deployments/${id}/pause`)).status, 200);
  const ahead = Date.now() + 10 * hourMs;
  const rows = t.app.store.db.updateTable('deployment').where('id', '=', id);
  await rows.set({ deadline_at: ahead, step_since: ahead }).execute();
  const mended = await until('the times to be mended', async () => {
    const row = await t.app.store.db
      .selectFrom('deployment')
      .select(['deadline_at', 'step_since'])
      .where('id', '=', id)
      .executeTakeFirstOrThrow();
    return row.deadline_at! < ahead && row;
  });
  assert.ok(mended.deadline_at! < Date.now() + hourMs && mended.step_since! < Date.now() + hourMs);
  await rows.set({ deadline_at: Date.now() - 1000 }).execute();
  assert.equal((await shop.reaches(id, 'failed')).failure?.code, 'approval_timeout');
});

test('time in which a canary was not measured is no part of its bake', async () => {
  offMs = 0;
  const { shop, id } = await canaryOf({ advance: 'auto', bake_s: 60 });
  const before = Date.parse((await shop.deployment(id)).canary!.until!);
  // As if the service had been down for two hours.
  await t.app.store.db
    .updateTable('deployment')
    .set((e) => ({
      measured_at: e('measured_at', '-', 2 * hourMs),
      step_until: e('step_until', '-', 2 * hourMs),
      deadline_at: e('deadline_at', '-', 2 * hourMs),
    }))
    .where('id', '=', id)
    .execute();
  const resumed = await until('the bake to go on', async () => {
    const deployment = await shop.deployment(id);
    return deployment.timeline.some(({ message }) => message.startsWith('It was not measured for')) && deployment;
  });
  assert.equal(resumed.state, 'canary');
  assert.equal(resumed.timeline.at(-1)!.message, 'It was not measured for 120 min: the bake goes on where it stopped.');
  const end = Date.parse(resumed.canary!.until!);
  assert.ok(end >= before - 1000 && end <= before + 20_000, `${end - before} ms`);
  await aborted(shop, id);
});
