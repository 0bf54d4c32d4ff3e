// What runs and what ended, and the health of environments and projects that follows from it.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Environment } from '../../../src/contract/environments.ts';
import type { Instance } from '../../../src/contract/instances.ts';
import { endInstance } from '../../../src/deployments/instance-queries.ts';
import { call } from '../../helpers/app.ts';
import { sharedApp } from '../../helpers/shared-app.ts';
import { Shop } from '../../helpers/shop.ts';
import { until } from '../../helpers/wait.ts';
import { image } from './deployments-fixture.ts';

const t = sharedApp({ tokenLimit: 1_000_000 }); // these tests poll more than a client should

const open = (settings?: object) => Shop.open(t.url, settings);
const path = '/environments/production/instances';

async function instancesOf(shop: Shop): Promise<Instance[]> {
  const { status, body } = await shop.api('GET', path);
  assert.equal(status, 200, JSON.stringify(body));
  return body.data;
}

const healthIs = (shop: Shop, state: Environment['health']['state']) =>
  until(
    `the environment to be ${state}`,
    async () => {
      const { health } = await shop.environment();
      return health.state === state ? health : undefined;
    },
    20_000,
  );

describe('GET E/instances', () => {
  test('before anything is deployed there are none, and the environment and the project are idle', async () => {
    const shop = await open();
    assert.deepEqual(await instancesOf(shop), []);
    const { health, created_at } = await shop.environment();
    assert.deepEqual(health, { state: 'idle', since: created_at, reason: null });
    const { body } = await shop.api('GET', '');
    assert.deepEqual(body.health, { ...health, environment: 'production' });
  });

  test('healthy instances, with when they started, where they run and what their last check said', async () => {
    const shop = await open({ replicas: 2, health_check: { interval_s: 1, healthy_after: 1, path: '/' } });
    await shop.released(image(1));
    await healthIs(shop, 'healthy');
    const instances = await until('checks', async () => {
      const found = await instancesOf(shop);
      return found.every(({ last_check }) => last_check?.ok) ? found : undefined;
    });
    assert.equal(instances.length, 2);
    for (const { id, started_at, node, last_check, ...rest } of instances) {
      assert.match(id, /^ins_/);
      assert.ok(Date.parse(started_at!) > Date.now() - 60_000);
      assert.ok(node);
      assert.equal(last_check!.message, '/ answered 200');
      assert.ok(Math.abs(Date.parse(last_check!.at) - Date.now()) < 60_000);
      assert.deepEqual(rest, { revision: 'r1', state: 'healthy', restarts: 0, ended: null });
    }
    assert.ok(instances[0]!.id > instances[1]!.id, 'newest first');
    const first = await shop.api('GET', `${path}?limit=1`);
    const second = await shop.api('GET', `${path}?limit=1&cursor=${first.body.page.next}`);
    assert.deepEqual(
      [...first.body.data, ...second.body.data].map((one: Instance) => one.id),
      [instances[0]!.id, instances[1]!.id],
    );
    assert.equal(second.body.page.has_more, false);
  });

  test('one that ends again and again: each end with its exit code, restarts count up, and an alert can fire', async () => {
    const shop = await open({ replicas: 1, variables: { STANDIN_EXIT_ON: '/exit' } });
    const rule = { environment: 'production', name: 'Restarts', metric: 'restarts', comparator: 'gt', threshold: 1 };
    assert.equal((await shop.api('POST', '/alert-rules', rule)).status, 201);
    await shop.released(image(1));
    const seen = await until(
      'two ends and a third instance',
      async () => {
        const found = await instancesOf(shop);
        if (found[0]!.restarts < 2) await shop.visit(undefined, '/exit');
        return found.filter(({ ended }) => ended).length >= 2 && found[0]!.restarts >= 2 ? found : undefined;
      },
      20_000,
    );
    const ends = seen.filter(({ state }) => state === 'ended').reverse();
    for (const [index, { ended, restarts, revision }] of ends.entries()) {
      assert.deepEqual([restarts, revision], [index, 'r1']);
      assert.deepEqual([ended!.exit_code, ended!.reason], [1, 'exited']);
      assert.ok(Date.parse(ended!.at) <= Date.now());
    }
    const { reason } = await until('a cause', async () => {
      await shop.visit(undefined, '/exit');
      const { health } = await shop.environment();
      return health.reason?.includes('exit code 1') ? health : undefined;
    });
    assert.match(reason!, /An instance ended with exit code 1\./);
    const fired = await until(
      'the alert',
      async () =>
        (await shop.api('GET', '/alerts?state=firing')).body.data.find((each: { value: number }) => each.value > 1),
      20_000,
      100,
    );
    assert.match(fired.message, /Instances ended by themselves \d+ times over 60 s, above 1\./);
  });

  test('of the instances that ended, the last fifty are kept, and none once the environment is deleted', async () => {
    const shop = await open();
    await shop.released(image(1));
    const { db } = t.app.store;
    const [row] = await db.selectFrom('instance').selectAll().where('project_id', '=', shop.project).execute();
    const nowMs = Date.now();
    const end = (at: number) => ({ at, reason: 'killed' as const, exitCode: 137, message: 'No matter.' });
    for (let index = 0; index < 60; index++) {
      const id = `ins_${String(index).padStart(26, '0')}`;
      await db.transaction().execute(async (tx) => {
        // Not one that the service would look after.
        await tx
          .insertInto('instance')
          .values({ ...row!, id, host: null, port: null, state: 'draining' })
          .execute();
        await endInstance(tx, id, end(nowMs - 60 + index));
      });
    }
    const kept = () =>
      db.selectFrom('instance_end').select(['id', 'exit_code']).where('project_id', '=', shop.project).execute();
    assert.equal((await kept()).length, 50);
    const page = (await shop.api('GET', `${path}?limit=100`)).body;
    assert.equal(page.data.length, 51);
    await db
      .updateTable('instance_end')
      .set({ ended_at: nowMs - 25 * 3600_000 })
      .where('project_id', '=', shop.project)
      .execute();
    assert.equal((await instancesOf(shop)).length, 1, 'those of the last 24 hours are shown');
    assert.equal((await shop.api('DELETE', '/environments/production')).status, 204);
    assert.deepEqual(await kept(), []);
  });

  test('one that its engine says ended before it was seen to run ended when it was seen', async () => {
    const shop = await open();
    await shop.released(image(1));
    await healthIs(shop, 'healthy');
    const [{ id, started_at }] = (await instancesOf(shop)) as [Instance];
    const at = Date.parse(started_at!) - 60_000;
    const end = { at, reason: 'exited' as const, exitCode: 1, message: 'By a clock that is behind.' };
    await t.app.store.db.transaction().execute((tx) => endInstance(tx, id, end));
    const ended = (await instancesOf(shop)).find((one) => one.id === id)!;
    assert.equal(ended.ended!.at, started_at);
  });

  test('who may not read deployments, and what does not exist', async () => {
    const shop = await open();
    assert.equal((await shop.api('GET', '/environments/none/instances')).body.error.code, 'environment_not_found');
    const scopes = ['projects:read'];
    const { body } = await call(t.url, 'POST', '/v1/tokens', { body: { name: 'reader', scopes } });
    const refused = await call(t.url, 'GET', `/v1/projects/${shop.project}${path}`, { token: body.token });
    assert.equal(refused.status, 403);
  });
});

describe('health', () => {
  test('a 503 for visitors is down everywhere, with since when and why', async () => {
    const failing = { variables: { STANDIN_FAIL_ON: '/fail' } };
    const shop = await open({
      health_check: { path: '/', interval_s: 1, healthy_after: 1, unhealthy_after: 1 },
      ...failing,
    });
    await shop.released(image(1));
    const before = Date.now();
    await shop.visit(undefined, '/fail');
    const down = await healthIs(shop, 'down');
    await until('visitors to get 503', async () => (await shop.visit()).status === 503);
    assert.equal(
      down.reason,
      'No instance of r1 is healthy. An instance does not pass its health check: / answered 500.',
    );
    assert.ok(Date.parse(down.since) >= before - 1000 && Date.parse(down.since) <= Date.now() + 1000);
    const [instance] = await instancesOf(shop);
    assert.equal(instance!.state, 'unhealthy');
    // A check that failed for another reason before: what is shown is what is wrong now.
    await t.app.store.db
      .updateTable('instance')
      .set({ check_message: '/: no answer in time' })
      .where('id', '=', instance!.id)
      .execute();
    const isCurrent = async () => (await instancesOf(shop))[0]!.last_check!.message === '/ answered 500';
    await until('the latest fault', isCurrent, 15_000);
    await until('its reason', async () => (await shop.environment()).health.reason === down.reason, 15_000);
    assert.deepEqual([instance!.last_check!.ok, instance!.last_check!.message], [false, '/ answered 500']);
    const listed = await shop.api('GET', '/environments');
    assert.deepEqual(listed.body.data[0].health, down);
    const projects = await call(t.url, 'GET', '/v1/projects?limit=100');
    const own = projects.body.data.find(({ id }: { id: string }) => id === shop.project);
    assert.deepEqual(own.health, { ...down, environment: 'production' });
    await shop.set({ variables: { STANDIN_FAIL_ON: null } });
    await shop.released(image(2));
    assert.equal((await healthIs(shop, 'healthy')).reason, null);
  });

  test('rollouts that go well are healthy throughout, whatever their strategy', async () => {
    const shop = await open({ replicas: 2 });
    await shop.released(image(1));
    await healthIs(shop, 'healthy');
    for (const [index, strategy] of ['rolling', 'blue_green', 'canary'].entries()) {
      const { id } = await shop.deploy(image(index + 2), { strategy });
      const seen = new Set<string>();
      await until('its end', async () => {
        const { health } = await shop.environment();
        seen.add(`${health.state} ${health.reason ?? ''}`.trim());
        const { state } = await shop.deployment(id);
        return state === 'succeeded' ? true : undefined;
      });
      assert.deepEqual([...seen], ['healthy'], strategy);
    }
  });
});
