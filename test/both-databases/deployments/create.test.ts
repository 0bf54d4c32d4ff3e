// Creating a deployment: the record, the refusals, and what a deployment in progress forbids.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { sharedApp } from '../../helpers/shared-app.ts';
import { Shop } from '../../helpers/shop.ts';
import { until } from '../../helpers/wait.ts';
import { eventsOf, image } from './deployments-fixture.ts';

const t = sharedApp({ tokenLimit: 1_000_000 }); // these tests poll more than a client should

const open = (settings?: object) => Shop.open(t.url, settings);

describe('creating', () => {
  test('201 with the record, its Location and deployment.created', async () => {
    const shop = await open();
    const { status, body, headers } = await shop.api('POST', '/deployments', {
      environment: 'production',
      image: image(1),
      note: 'first',
    });
    assert.equal(status, 201);
    assert.equal(headers.get('location'), `${t.url}/v1/projects/${shop.project}/deployments/${body.id}`);
    const { id, created_at, created_by, timeline, ...rest } = body;
    assert.match(id, /^dpl_/);
    assert.match(created_by, /^tok_/);
    assert.deepEqual(timeline, [{ at: created_at, state: 'queued', message: 'Accepted.' }]);
    assert.deepEqual(rest, {
      project_id: shop.project,
      environment: 'production',
      kind: 'deploy',
      revision: 'r1',
      previous_revision: null,
      image: image(1),
      digest: null,
      local: false,
      pull: 'always',
      strategy: 'rolling',
      canary_percent: null,
      state: 'queued',
      canary: null,
      failure: null,
      note: 'first',
      started_at: null,
      finished_at: null,
    });
    const [first] = await eventsOf(t.app.store.db, shop);
    assert.deepEqual(first, { type: 'deployment.created', data: body });
    await shop.reaches(id, 'succeeded');
  });

  test('refusals: 400, 404, 409, 422, and none of them uses up a revision number', async () => {
    const shop = await open();
    const post = async (body: object) => {
      const result = await shop.api('POST', '/deployments', { environment: 'production', image: image(1), ...body });
      return [result.status, result.body.error?.code];
    };
    assert.deepEqual(await post({ image: 'Not An Image' }), [400, 'invalid_request']);
    assert.deepEqual(await post({ canary_percent: 10 }), [400, 'invalid_request']);
    assert.deepEqual(await post({ strategy: 'canary', canary_percent: 100 }), [400, 'invalid_request']);
    assert.deepEqual(await post({ strategy: 'big_bang' }), [400, 'invalid_request']);
    assert.deepEqual(await post({ environment: 'nowhere' }), [422, 'environment_unknown']);
    await shop.set({ locked: { reason: 'freeze' } });
    assert.deepEqual(await post({}), [422, 'environment_locked']);
    await shop.set({ locked: null });
    assert.equal((await shop.deploy(image(1))).revision, 'r1');
  });

  test('50 simultaneous POSTs to one environment: exactly one 201, the rest 409 naming the winner', async () => {
    const shop = await open({ variables: { STANDIN_UNHEALTHY: '1' } }); // it does not end before the last has asked
    const results = await Promise.all(
      Array.from({ length: 50 }, (_, i) =>
        shop.api('POST', '/deployments', { environment: 'production', image: image(i) }),
      ),
    );
    const won = results.filter((result) => result.status === 201);
    assert.equal(won.length, 1);
    for (const { status, body } of results) {
      if (status === 201) continue;
      assert.equal(status, 409);
      assert.equal(body.error.code, 'deployment_in_progress');
      assert.deepEqual(body.error.details, [{ path: 'deployment', message: won[0]!.body.id }]);
    }
    await shop.api('POST', `/deployments/${won[0]!.body.id}/abort`);
    await shop.reaches(won[0]!.body.id, 'canceled');
    assert.equal((await shop.deploy(image('next'))).revision, 'r2');
  });

  test('409 on deleting a project or environment during a deployment; once it is deleted, its route is gone', async () => {
    const shop = await open({ variables: { STANDIN_UNHEALTHY: '1' } });
    const { id } = await shop.deploy(image(1));
    for (const path of ['', '/environments/production']) {
      const { status, body } = await shop.api('DELETE', path);
      assert.equal(status, 409);
      assert.deepEqual([body.error.code, body.error.details[0].message], ['deployment_in_progress', id]);
    }
    await shop.api('POST', `/deployments/${id}/abort`);
    await shop.reaches(id, 'canceled');
    await shop.set({ variables: { STANDIN_UNHEALTHY: null } });
    await shop.released(image(2));
    assert.equal((await shop.visit()).status, 200);
    assert.equal((await shop.api('DELETE', '')).status, 204);
    await until('the route to be gone', async () => ((await shop.visit()).status === 404 ? true : undefined));
    const engine = (await t.call('GET', '/v1/regions')).body.data[0];
    assert.equal(engine.available, true);
  });
});
