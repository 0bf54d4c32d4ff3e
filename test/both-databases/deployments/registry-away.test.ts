// A registry that refuses connections: told at once, asked seldom, and no trouble if it is back in time.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { pino } from 'pino';
import { startApp, type TestApp } from '../../helpers/app.ts';
import { dockerMissing, startDocker, startRegistry, type TestDocker, type TestRegistry } from '../../helpers/docker.ts';
import { pushImage } from '../../helpers/images.ts';
import { Shop } from '../../helpers/shop.ts';
import { until } from '../../helpers/wait.ts';

const windowMs = 5_000;

describe('a registry that is away', { skip: dockerMissing }, () => {
  let docker: TestDocker;
  let registry: TestRegistry;
  const apps: TestApp[] = [];
  let image: string;
  const failedPulls: string[] = [];

  before(async () => {
    [docker, registry] = await Promise.all([startDocker(), startRegistry()]);
    image = await pushImage(docker, registry, 'web');
  });
  after(async () => {
    for (const app of apps) await app.stop();
    await docker?.stop();
    await registry?.stop();
  });

  async function openShop(pullTimeoutS: number): Promise<Shop> {
    const write = (line: string) => {
      if (line.includes('could not be pulled')) failedPulls.push(line);
    };
    const app = await startApp({
      log: pino({ level: 'warn' }, { write }),
      tokenLimit: 1_000_000,
      env: { SLUICE_REGIONS: `local=docker:${docker.socket}`, SLUICE_PULL_TIMEOUT_S: String(pullTimeoutS) },
    });
    apps.push(app);
    return Shop.open(app.url);
  }

  test('the timeline says so at once, and once; few pulls are tried; once it is back the deployment goes on', async () => {
    const shop = await openShop(60);
    await registry.pause();
    const begun = performance.now();
    const { id } = await shop.deploy(image);
    const messages = async () => (await shop.deployment(id)).timeline.map(({ message }) => message);
    const told = async () => (await messages()).find((message) => /cannot be reached/.test(message));
    assert.match(
      await until('the reason', told, 15_000),
      /^The registry cannot be reached: .*connection refused\. Trying again\.$/,
    );
    await until('the window to end', () => performance.now() - begun > windowMs, 2 * windowMs, 100);
    const tried = failedPulls.length;
    assert.ok(tried >= 1 && tried <= 4, `${tried} pulls in ${windowMs} ms`);
    assert.equal((await messages()).filter((message) => /cannot be reached/.test(message)).length, 1);
    await registry.resume();
    await shop.reaches(id, 'succeeded');
    assert.equal((await shop.visit()).image, image);
  });

  test('away until the deadline of the setting: registry_unreachable, and what served goes on serving', async () => {
    const shop = await openShop(3);
    await shop.released(image);
    await registry.pause();
    try {
      const { id } = await shop.deploy(image);
      const { failure } = await shop.reaches(id, 'failed');
      assert.equal(failure!.code, 'registry_unreachable');
      assert.match(failure!.message, /connection refused/);
      assert.equal((await shop.visit()).revision, 'r1');
    } finally {
      await registry.resume();
    }
  });
});
