// Port, variables, health check and resources are part of a revision: a change holds from the next deployment on.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { PendingChange } from '../../../src/contract/environments.ts';
import { sharedApp } from '../../helpers/shared-app.ts';
import { Shop } from '../../helpers/shop.ts';
import { until } from '../../helpers/wait.ts';
import { image, instancesOf } from './deployments-fixture.ts';

const t = sharedApp({ tokenLimit: 1_000_000 }); // these tests poll more than a client should

const open = (settings?: object) => Shop.open(t.url, settings);
const redeploy = (shop: Shop, body?: object) => shop.api('POST', '/environments/production/redeploy', body);
const pendingOf = async (shop: Shop) => (await shop.environment()).pending_changes;
const fieldsOf = (changes: PendingChange[]) => changes.map(({ field, change }) => `${change} ${field}`);

describe('settings of a revision', () => {
  test('a changed health check leaves what runs alone, and holds for what is deployed next', async () => {
    // Every second answer is an error: good enough for this check, not for the next.
    const check = { path: '/old', interval_s: 1, healthy_after: 1, unhealthy_after: 10 };
    const shop = await open({ variables: { STANDIN_ERROR_RATE: '0.5' }, health_check: check });
    const { id } = await shop.released(image(1));
    const before = await instancesOf(t.app.store.db, shop);
    const probes = async (path: string) => {
      const { body } = await shop.api('GET', `/deployments/${id}/logs`);
      return body.data.filter(({ text }: { text: string }) => text.startsWith(`GET ${path} `)).length;
    };
    await shop.set({ health_check: { path: '/new', unhealthy_after: 1, start_timeout_s: 5 } });
    const seen = await probes('/old');
    const isProbedTwice = async () => {
      assert.equal(await probes('/new'), 0);
      return (await probes('/old')) >= seen + 2;
    };
    await until('two more probes that failed', isProbedTwice, 60_000, 100);
    assert.deepEqual(await instancesOf(t.app.store.db, shop), before);

    await shop.set({ variables: { STANDIN_ERROR_RATE: '1' } });
    const failed = await shop.reaches((await redeploy(shop)).body.id, 'failed');
    assert.equal(failed.failure!.code, 'health_check_failed');
    assert.match(failed.failure!.message, /\/new/);
    assert.equal((await shop.environment()).active_revision, 'r1');
  });

  test('redeploy rolls the live image out by its digest with what was changed, and then nothing is pending', async () => {
    const shop = await open({ variables: { STAYS: 'secret-a', GOES: 'secret-b', TURNS: 'secret-c' } });
    const first = await shop.released(image(1));
    assert.deepEqual(await pendingOf(shop), []);
    await shop.set({ variables: { STAYS: 'secret-a' }, replicas: 2, canary: { bake_s: 2 } });
    assert.deepEqual(await pendingOf(shop), [], 'the same value is no change, and the others hold at once');
    await shop.set({
      port: 9000,
      health_check: { interval_s: 3 },
      resources: { memory_mb: 256 },
      variables: { GOES: null, TURNS: 'secret-d', COMES: 'secret-e' },
    });
    const changed = await shop.environment();
    assert.deepEqual(changed.pending_changes, [
      { field: 'port', change: 'changed', from: '8080', to: '9000' },
      { field: 'health_check.interval_s', change: 'changed', from: '1', to: '3' },
      { field: 'resources.memory_mb', change: 'changed', from: '512', to: '256' },
      { field: 'variables.COMES', change: 'added', from: null, to: null },
      { field: 'variables.GOES', change: 'removed', from: null, to: null },
      { field: 'variables.TURNS', change: 'changed', from: null, to: null },
    ]);
    assert.ok(!JSON.stringify(changed).includes('secret-'));
    const { body: list } = await shop.api('GET', '/environments');
    assert.deepEqual(list.data[0].pending_changes, changed.pending_changes);

    const { status, body, headers } = await redeploy(shop, { note: 'more memory', strategy: 'blue_green' });
    assert.equal(status, 201, JSON.stringify(body));
    assert.match(headers.get('location')!, new RegExp(`/deployments/${body.id}$`));
    assert.deepEqual(
      [body.kind, body.image, body.digest, body.revision, body.note, body.strategy],
      ['deploy', image(1), first.digest, 'r2', 'more memory', 'blue_green'],
    );
    assert.deepEqual(await pendingOf(shop), [], 'they are being rolled out');
    await shop.reaches(body.id, 'succeeded');
    assert.deepEqual(await pendingOf(shop), []);
    const { port, health_check, resources } = await shop.revision('r2');
    assert.deepEqual([port, health_check.interval_s, resources], [9000, 3, { memory_mb: 256, cpus: 1 }]);
  });

  test('a rollback restores all of them, and what it leaves out is pending', async () => {
    const shop = await open({ variables: { A: 'one' }, resources: { cpus: 0.5 } });
    await shop.released(image(1));
    await shop.set({ port: 9000, variables: { A: 'two' }, health_check: { path: '/up' }, resources: { cpus: 2 } });
    await shop.released(image(2));
    const { body } = await shop.api('POST', '/environments/production/rollback');
    await shop.reaches(body.id, 'succeeded');
    const [first, restored] = [await shop.revision('r1'), await shop.revision('r3')];
    for (const field of ['port', 'health_check', 'resources'] as const) assert.deepEqual(restored[field], first[field]);
    assert.deepEqual(fieldsOf(await pendingOf(shop)), [
      'changed port',
      'added health_check.path',
      'changed resources.cpus',
      'changed variables.A',
    ]);
  });

  test('a deployment that fails leaves what it was to bring pending', async () => {
    const shop = await open();
    await shop.released(image(1));
    await shop.set({ variables: { STANDIN_IMAGE_MISSING: '1' } });
    await shop.reaches((await shop.deploy(image(2))).id, 'failed');
    assert.deepEqual(fieldsOf(await pendingOf(shop)), ['added variables.STANDIN_IMAGE_MISSING']);
  });

  test('refused: nothing is live, a deployment is in progress, the environment is locked, a bad choice', async () => {
    const shop = await open({ canary: { advance: 'manual' } });
    const refused = async (body?: object) => {
      const result = await redeploy(shop, body);
      return [result.status, result.body.error?.code];
    };
    assert.deepEqual(await refused(), [422, 'revision_not_eligible']);
    await shop.released(image(1));
    assert.deepEqual(await refused({ canary_percent: 5 }), [400, 'invalid_request']);
    assert.deepEqual(await refused({ image: image(2) }), [400, 'invalid_request']);
    const canary = (await redeploy(shop, { strategy: 'canary', canary_percent: 5 })).body;
    assert.deepEqual(await refused(), [409, 'deployment_in_progress']);
    await shop.reaches(canary.id, 'canary');
    await shop.api('POST', `/deployments/${canary.id}/abort`);
    await shop.reaches(canary.id, 'canceled');
    await shop.set({ locked: { reason: 'freeze' } });
    assert.deepEqual(await refused(), [422, 'environment_locked']);
  });

  test('resources have bounds, and merge', async () => {
    const shop = await open();
    const set = async (resources: object) => {
      const { status, body } = await shop.api('PATCH', '/environments/production', { resources });
      return status === 200 ? body.resources : [status, body.error.details[0].path];
    };
    assert.deepEqual((await shop.environment()).resources, { memory_mb: 512, cpus: 1 });
    assert.deepEqual(await set({ cpus: 0.07 }), { memory_mb: 512, cpus: 0.07 });
    assert.deepEqual(await set({ memory_mb: 262_144 }), { memory_mb: 262_144, cpus: 0.07 });
    for (const memory_mb of [15, 262_145, 64.5])
      assert.deepEqual(await set({ memory_mb }), [400, 'body.resources.memory_mb']);
    for (const cpus of [0.04, 64.01, 0.055]) assert.deepEqual(await set({ cpus }), [400, 'body.resources.cpus']);
    assert.deepEqual((await set({ disk_gb: 1 }))[0], 400);
  });
});
