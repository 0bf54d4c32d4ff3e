// Many deployments to a Docker engine whose disk has room for a few images.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { startApp, type TestApp } from '../helpers/app.ts';
import { dockerMissing, startDocker, startRegistry, type TestDocker, type TestRegistry } from '../helpers/docker.ts';
import { pushImage } from '../helpers/images.ts';
import { Shop } from '../helpers/shop.ts';

/** More than fit, and more at full size: npm run soak -- planes. */
const deployments = Number(process.env.SLUICE_TEST_DEPLOYMENTS ?? 12);
const imageMb = 6;
const diskMb = 60;

describe('a small disk', { skip: dockerMissing }, () => {
  let small: TestDocker;
  let builder: TestDocker;
  let registry: TestRegistry;
  let t: TestApp;

  before(async () => {
    [small, builder, registry] = await Promise.all([startDocker({ diskMb }), startDocker(), startRegistry()]);
    t = await startApp({
      tokenLimit: 1_000_000,
      env: { SLUICE_REGIONS: `local=docker:${small.socket}` },
    });
  });
  after(async () => {
    await t?.stop();
    await small?.stop();
    await builder?.stop();
    await registry?.stop();
  });

  test(`${deployments} deployments in a row of ${imageMb} MB each on ${diskMb} MB: none fails, and no visit`, {
    timeout: 600_000,
  }, async () => {
    const shop = await Shop.open(t.url, { retention: 1 });
    const push = (n: number) =>
      pushImage(builder, registry, 'web', { image: 'shop', tag: `v${n}`, ballastMb: imageMb });
    await shop.released(await push(1));
    const load = shop.load(1);
    for (let n = 2; n <= deployments; n++) await shop.released(await push(n));
    const { failed } = await load.stop();
    assert.deepEqual(failed, []);
    assert.equal((await shop.environment()).active_revision, `r${deployments}`);
  });
});
