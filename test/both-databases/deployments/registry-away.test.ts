// A registry that does not answer as it should: told at once, asked seldom, and no trouble if it is well in time. One that
// cannot be reached at all fails the deployment within seconds.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
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

  /** What answers in place of the registry: an error, as a registry that is being restarted behind its proxy. */
  async function answerErrors(): Promise<{ stop(): Promise<void> }> {
    const server = createServer((_, response) => response.writeHead(503).end());
    const [host, port] = registry.host.split(':');
    server.listen(Number(port), host);
    await once(server, 'listening');
    return {
      async stop() {
        server.closeAllConnections();
        await new Promise((resolve) => server.close(resolve));
      },
    };
  }

  const messagesOf = async (shop: Shop, id: string) =>
    (await shop.deployment(id)).timeline.map((entry) => entry.message);

  test('errors are told at once, and once; few pulls are tried; once it is well the deployment goes on', async () => {
    const shop = await openShop(60);
    await registry.pause();
    const errors = await answerErrors();
    const begun = performance.now();
    const { id } = await shop.deploy(image);
    const told = async () => (await messagesOf(shop, id)).find((message) => /does not answer/.test(message));
    assert.match(
      await until('the reason', told),
      /^The registry does not answer as it should: .*503.*\. Trying again\.$/,
    );
    await until('the window to end', () => performance.now() - begun > windowMs, 2 * windowMs, 100);
    const tried = failedPulls.length;
    assert.ok(tried >= 1 && tried <= 4, `${tried} pulls in ${windowMs} ms`);
    assert.equal((await messagesOf(shop, id)).filter((message) => /does not answer/.test(message)).length, 1);
    await errors.stop();
    await registry.resume();
    await shop.reaches(id, 'succeeded');
    assert.equal((await shop.visit()).image, image);
  });

  test('refused connections: registry_unreachable within seconds, and what served goes on serving', async () => {
    const shop = await openShop(1800);
    await shop.released(image);
    await registry.pause();
    try {
      const { id } = await shop.deploy(image);
      const told = async () => (await messagesOf(shop, id)).find((message) => /cannot be reached/.test(message));
      await until('the reason', told);
      const knownAt = performance.now();
      const { failure } = await shop.reaches(id, 'failed');
      const tookMs = performance.now() - knownAt;
      assert.equal(failure!.code, 'registry_unreachable');
      assert.match(failure!.message, /connection refused\. Check the name of the registry/);
      assert.ok(tookMs < 30_000, `it took ${tookMs} ms`);
      assert.equal((await shop.visit()).revision, 'r1');
    } finally {
      await registry.resume();
    }
  });
});
