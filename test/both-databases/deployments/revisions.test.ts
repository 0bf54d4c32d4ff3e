// The list of revisions, and rollbacks to one of them.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { sharedApp } from '../../helpers/shared-app.ts';
import { Shop } from '../../helpers/shop.ts';
import { image } from './deployments-fixture.ts';

const t = sharedApp({ tokenLimit: 1_000_000 }); // these tests poll more than a client should

const open = (settings?: object) => Shop.open(t.url, settings);

describe('revisions', () => {
  test('a revision that can run no more keeps no copy of its variables', async () => {
    const shop = await open({ retention: 1, variables: { A: 'one' } });
    for (const n of [1, 2, 3, 4]) await shop.released(image(n));
    const failing = await shop.deploy(image(5));
    await shop.reaches(failing.id, 'succeeded');
    const rows = await t.app.store.db
      .selectFrom('revision')
      .select(['number', 'state', 'variables_sealed'])
      .where('project_id', '=', shop.project)
      .orderBy('number')
      .execute();
    assert.deepEqual(
      rows.map(({ number, state, variables_sealed }) => [Number(number), state, variables_sealed !== null]),
      [
        [1, 'retired', false],
        [2, 'retired', false],
        [3, 'retired', true],
        [4, 'superseded', true],
        [5, 'active', true],
      ],
    );
  });

  test('listed newest first; a rollback restores image and variables as a new revision', async () => {
    const shop = await open({ variables: { A: 'one' } });
    await shop.released(image(1));
    await shop.set({ variables: { A: 'two' } });
    await shop.released(image(2));
    const { body } = await shop.api('GET', '/environments/production/revisions');
    assert.deepEqual(
      body.data.map(({ id, state, rollback_eligible }: { id: string; state: string; rollback_eligible: boolean }) => [
        id,
        state,
        rollback_eligible,
      ]),
      [
        ['r2', 'active', false],
        ['r1', 'superseded', true],
      ],
    );
    const rollback = await shop.api('POST', '/environments/production/rollback');
    assert.equal(rollback.status, 201);
    assert.deepEqual(
      [rollback.body.kind, rollback.body.revision, rollback.body.previous_revision],
      ['rollback', 'r3', 'r2'],
    );
    await shop.reaches(rollback.body.id, 'succeeded');
    assert.equal((await shop.visit()).image, image(1));
    const restored = await shop.revision('r3');
    assert.equal(restored.restored_from, 'r1');
    assert.equal(restored.digest, (await shop.revision('r1')).digest);
    assert.equal((await shop.revision('r2')).state, 'rolled_back');
  });

  test('404 revision_not_found, 422 revision_not_eligible', async () => {
    const shop = await open();
    const rollback = async (body?: object) => {
      const result = await shop.api('POST', '/environments/production/rollback', body);
      return [result.status, result.body.error?.code];
    };
    assert.deepEqual(await rollback(), [422, 'revision_not_eligible']);
    assert.deepEqual(await rollback({ revision: 'r9' }), [404, 'revision_not_found']);
    await shop.released(image(1));
    assert.deepEqual(await rollback({ revision: 'r1' }), [422, 'revision_not_eligible']);
    await shop.set({ variables: { STANDIN_IMAGE_MISSING: '1' } });
    await shop.reaches((await shop.deploy(image(2))).id, 'failed');
    assert.deepEqual(await rollback({ revision: 'r2' }), [422, 'revision_not_eligible']);
    assert.equal(
      (await shop.api('GET', '/environments/production/revisions/r7')).body.error.code,
      'revision_not_found',
    );
    assert.equal((await shop.api('GET', '/environments/production/revisions/x')).body.error.code, 'revision_not_found');
  });

  test('409 deployment_in_progress, not 422, where there is nothing yet because a deployment is under way', async () => {
    const shop = await open();
    const codeOf = async (action: string) =>
      (await shop.api('POST', `/environments/production/${action}`)).body.error?.code;
    await shop.set({ variables: { STANDIN_UNHEALTHY: '1' } });
    const first = await shop.deploy(image(1));
    assert.deepEqual([await codeOf('rollback'), await codeOf('redeploy')], Array(2).fill('deployment_in_progress'));
    await shop.api('POST', `/deployments/${first.id}/abort`);
    await shop.set({ variables: { STANDIN_UNHEALTHY: null } });
    await shop.reaches(first.id, 'canceled');
    await shop.released(image(2));
    const canary = await shop.deploy(image(3), { strategy: 'canary' });
    await shop.reaches(canary.id, 'canary');
    assert.equal(await codeOf('rollback'), 'deployment_in_progress');
  });

  test('only the latest revisions stay eligible for rollback', async () => {
    const shop = await open({ retention: 1 });
    for (const tag of [1, 2, 3]) await shop.released(image(tag));
    assert.deepEqual([(await shop.revision('r1')).state, (await shop.revision('r2')).state], ['retired', 'superseded']);
  });
});
