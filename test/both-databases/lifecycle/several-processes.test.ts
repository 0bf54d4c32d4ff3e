// Two processes on one PostgreSQL: each environment is looked after by one of them, and both route to it.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { type App, createApp } from '../../../src/app.ts';
import { readConfig } from '../../../src/config.ts';
import { isolatedEnv, onPostgres } from '../../helpers/app.ts';
import { Shop } from '../../helpers/shop.ts';
import { until } from '../../helpers/wait.ts';

if (onPostgres) {
  describe('two processes', () => {
    let isolated: Awaited<ReturnType<typeof isolatedEnv>>;
    let one: App;
    let two: App;
    before(async () => {
      isolated = await isolatedEnv();
      const start = () => createApp(readConfig(isolated.env, false), { tokenLimit: 1_000_000 });
      [one, two] = [await start(), await start()];
    });
    after(async () => {
      await two.stop();
      await isolated.clean();
    });

    test('ten environments at once: each deployment is carried out once, and either router serves it', async () => {
      const shops = await Promise.all(
        Array.from({ length: 10 }, (_, i) => Shop.open(i % 2 ? one.apiUrl() : two.apiUrl(), { canary: { bake_s: 1 } })),
      );
      const done = await Promise.all(shops.map((shop) => shop.released('registry.example/shop:1')));
      for (const deployment of done) {
        assert.deepEqual(
          deployment.timeline.map((entry) => entry.state),
          ['queued', 'preparing', 'starting', 'promoting', 'succeeded'],
        );
      }
      for (const shop of shops) {
        for (const url of [one.apiUrl(), two.apiUrl()]) {
          const there = await Shop.at(url, shop.project);
          await until('an answer', async () => ((await there.visit()).status === 200 ? true : undefined));
        }
      }
      const leases = await one.store.db.selectFrom('environment_lease').select('owner').execute();
      assert.equal(leases.length, 10);
    });

    test('what both routers measured adds up', async () => {
      const shop = await Shop.open(one.apiUrl(), { canary: { advance: 'manual', bake_s: 600 } });
      await shop.released('registry.example/shop:1');
      const { id } = await shop.deploy('registry.example/shop:2', { strategy: 'canary', canary_percent: 50 });
      await shop.reaches(id, 'canary');
      const other = await Shop.at(two.apiUrl(), shop.project);
      for (const side of [shop, other])
        await until('both sides', async () => ((await side.visit()).cookie ? true : undefined));
      const before = (await shop.deployment(id)).canary!;
      for (let i = 0; i < 100; i++) await (i % 2 ? shop : other).visit();
      await until('the sum', async () => {
        const { canary } = await shop.deployment(id);
        const seen = canary!.stable.requests + canary!.canary.requests;
        return seen >= before.stable.requests + before.canary.requests + 100 ? true : undefined;
      });
      await shop.api('POST', `/deployments/${id}/abort`);
      await shop.reaches(id, 'canceled');
    });

    test('when one stops, the other takes over what it looked after', async () => {
      const shops = await Promise.all(Array.from({ length: 4 }, () => Shop.open(two.apiUrl())));
      await Promise.all(shops.map((shop) => shop.released('registry.example/shop:1')));
      await one.stop();
      for (const shop of shops) {
        await until(
          'an answer from the other',
          async () => ((await shop.visit()).status === 200 ? true : undefined),
          30_000,
        );
      }
      const owners = await two.store.db.selectFrom('environment_lease').select('owner').distinct().execute();
      assert.equal(owners.length, 1);
    });
  });
}
