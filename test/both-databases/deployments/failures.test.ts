// Deployments that fail or are aborted, while the previous revision goes on serving.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { sharedApp } from '../../helpers/shared-app.ts';
import { Shop } from '../../helpers/shop.ts';
import { until } from '../../helpers/wait.ts';
import { eventsOf, image, instancesOf } from './deployments-fixture.ts';

const t = sharedApp({ tokenLimit: 1_000_000 }); // these tests poll more than a client should

const open = (settings?: object) => Shop.open(t.url, settings);

describe('failing', () => {
  for (const [what, variables, code] of [
    ['an image that is not there', { STANDIN_IMAGE_MISSING: '1' }, 'image_not_found'],
    ['an instance that does not listen', { STANDIN_UNHEALTHY: '1' }, 'port_not_listening'],
    ['an instance that ends again and again', { STANDIN_EXIT_AFTER_S: '0.05' }, 'crashed'],
  ] as const) {
    test(`${what}: ${code}, and the previous revision goes on serving`, async () => {
      const shop = await open({ health_check: { start_timeout_s: code === 'crashed' ? 20 : 2, healthy_after: 5 } });
      await shop.released(image(1));
      await shop.set({ variables });
      const load = shop.load(2);
      const { id } = await shop.deploy(image(2));
      const failed = await shop.reaches(id, 'failed');
      assert.equal(failed.failure!.code, code);
      assert.deepEqual((await load.stop()).failed, []);
      assert.equal((await shop.visit()).revision, 'r1');
      assert.equal((await shop.revision('r2')).state, 'failed');
      if (code === 'crashed') assert.match(failed.failure!.log_tail.join('\n'), /exit code 1/);
      const ended = (await eventsOf(t.app.store.db, shop)).findLast(({ type }) => type === 'deployment.failed');
      const told = ended!.data.failure;
      assert.deepEqual([told.code, told.log_tail], [code, []], 'lines of logs are in no event');
      await until('no instance of it', async () => {
        const rows = await instancesOf(t.app.store.db, shop);
        return rows.every((row) => row.revision === 1) ? true : undefined;
      });
    });
  }

  test('a health check that answers badly: health_check_failed', async () => {
    const shop = await open({
      health_check: { path: '/', start_timeout_s: 2 },
      variables: { STANDIN_ERROR_RATE: '1' },
    });
    const { id } = await shop.deploy(image(1));
    const failed = await shop.reaches(id, 'failed');
    assert.equal(failed.failure!.code, 'health_check_failed');
    assert.match(failed.failure!.message, /answered 500/);
    assert.equal((await shop.visit()).status, 404, 'nothing was ever live');
  });

  test('abort in every early state ends as canceled', async () => {
    const shop = await open({ variables: { STANDIN_UNHEALTHY: '1' } });
    const { id } = await shop.deploy(image(1));
    await shop.reaches(id, 'starting');
    const { body } = await shop.api('POST', `/deployments/${id}/abort`);
    assert.equal(body.state, 'aborting');
    const ended = await shop.reaches(id, 'canceled');
    assert.deepEqual([ended.failure!.code, ended.failure!.message], ['aborted', 'Aborted by admin.']);
    assert.deepEqual(
      (await eventsOf(t.app.store.db, shop)).map(({ type }) => type),
      ['deployment.created', 'deployment.failed'],
    );
  });
});
