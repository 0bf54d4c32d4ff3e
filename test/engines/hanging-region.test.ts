// Two regions, one of whose Docker answers its ping and hangs otherwise: the other one does not notice.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { createDockerEngine } from '../../src/engines/docker/docker.ts';
import { startApp, type TestApp } from '../helpers/app.ts';
import { dockerMissing, startDocker, startRegistry, type TestDocker, type TestRegistry } from '../helpers/docker.ts';
import { type HangingDocker, hangingDocker } from '../helpers/hanging-docker.ts';
import { pushImage } from '../helpers/images.ts';
import { ids, specOf, startReady } from '../helpers/instances.ts';
import { quick, Shop } from '../helpers/shop.ts';
import { until } from '../helpers/wait.ts';
import { isFault } from './faults.ts';

const farShops = 3;
const measured = 3;

describe('a region whose Docker hangs', { skip: dockerMissing }, () => {
  let docker: TestDocker;
  let registry: TestRegistry;
  let proxy: HangingDocker;
  let t: TestApp;
  const images: string[] = [];

  before(async () => {
    [docker, registry] = await Promise.all([startDocker(), startRegistry()]);
    for (const tag of ['v1', 'v2']) images.push(await pushImage(docker, registry, 'web', { tag }));
    proxy = await hangingDocker(docker.socket);
    const regions = `near=docker:${docker.socket},far=docker:${proxy.address}`;
    t = await startApp({ tokenLimit: 1_000_000, env: { SLUICE_REGIONS: regions } });
  });
  after(async () => {
    proxy?.release();
    await t?.stop();
    proxy?.stop();
    await docker?.stop();
    await registry?.stop();
  });

  async function openIn(region: string): Promise<Shop> {
    const { body } = await t.call('POST', '/v1/projects', { body: { name: `In ${region}`, region } });
    const shop = await Shop.at(t.url, body.id);
    await shop.set(quick);
    return shop;
  }

  async function isAvailable(region: string): Promise<boolean> {
    const { body } = await t.call('GET', '/v1/regions');
    return body.data.find(({ name }: { name: string }) => name === region).available;
  }

  /** The middle one of some deployments, one after the other. */
  async function deploymentMs(shop: Shop): Promise<number> {
    const times: number[] = [];
    for (let n = 0; n < measured; n++) {
      const begun = performance.now();
      await shop.released(images[n % 2]!);
      times.push(performance.now() - begun);
    }
    return times.sort((a, b) => a - b)[1]!;
  }

  test('an engine that hangs only where containers are created is away too, until it creates them again', async () => {
    // A busy machine may take seconds to create a container.
    const timeouts = { probe: 10_000, change: 10_000 };
    const engine = await createDockerEngine({ address: proxy.address, installation: ids('installation'), timeouts });
    try {
      const spec = await specOf(engine, { image: images[0]!, variables: {} });
      proxy.hang(/^POST \/containers\/create/);
      await engine.probe();
      await assert.rejects(engine.start(spec), isFault('unavailable'));
      await assert.rejects(engine.probe(), isFault('unavailable'));
      proxy.release();
      await engine.probe();
      await startReady(engine, spec);
      await engine.stop(spec.id, 0);
    } finally {
      proxy.release();
      await engine.close();
    }
  });

  test('deployments elsewhere take as long as before; it is reported, refused, and back by itself', async (context) => {
    const near = await openIn('near');
    const far = await Promise.all(Array.from({ length: farShops }, () => openIn('far')));
    for (const shop of far) await shop.released(images[0]!);
    const undisturbed = await deploymentMs(near);

    const deployments = await Promise.all(far.slice(1).map((shop) => shop.deploy(images[1]!)));
    proxy.hang();
    const disturbed = await deploymentMs(near);
    assert.ok(
      disturbed < 3 * undisturbed + 1000,
      `took ${Math.round(disturbed)} ms where ${Math.round(undisturbed)} ms are usual`,
    );
    await until('the region to be reported', async () => !(await isAvailable('far')), 30_000, 200);
    assert.equal(await isAvailable('near'), true);
    const refused = await far[0]!.api('POST', '/deployments', { environment: 'production', image: images[1] });
    assert.deepEqual([refused.status, refused.body.error.code], [503, 'region_unavailable']);
    assert.equal((await far[0]!.visit()).status, 200, 'what runs there is visited as before');
    assert.ok(proxy.taken() > 0);

    proxy.release();
    await until('the region to be back', () => isAvailable('far'), 30_000, 200);
    for (const [n, { id }] of deployments.entries()) await far[n + 1]!.reaches(id, 'succeeded');
    await far[0]!.released(images[1]!);
    context.diagnostic(
      `a deployment took ${Math.round(undisturbed)} ms undisturbed, ${Math.round(disturbed)} ms disturbed`,
    );
  });
});
