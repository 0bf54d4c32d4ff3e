// Rollouts on a real Docker engine: a service that is killed at any point, an engine that goes away.
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { after, before, describe, test } from 'node:test';
import type { Deployment } from '../../src/contract/deployments.ts';
import { call, isolatedEnv } from '../helpers/app.ts';
import { dockerMissing, startDocker, startRegistry, type TestDocker, type TestRegistry } from '../helpers/docker.ts';
import { pushImage } from '../helpers/images.ts';
import { type Service, startService } from '../helpers/service.ts';
import { Shop } from '../helpers/shop.ts';
import { until } from '../helpers/wait.ts';

describe('on Docker', { skip: dockerMissing }, () => {
  let docker: TestDocker;
  let registry: TestRegistry;
  let isolated: Awaited<ReturnType<typeof isolatedEnv>>;
  let env: Record<string, string>;
  let service: Service;
  let shop: Shop;
  const images: string[] = [];

  before(async () => {
    [docker, registry, isolated] = await Promise.all([startDocker(), startRegistry(), isolatedEnv()]);
    for (const tag of ['v1', 'v2']) images.push(await pushImage(docker, registry, 'web', { image: 'shop', tag }));
    // Routers that were killed hold up the end of an instance for as long as their lease.
    env = { ...isolated.env, SLUICE_REGIONS: `local=docker:${docker.socket}`, SLUICE_ROUTER_LEASE_S: '5' };
    service = startService(env);
    // A visit of the test before may be counted late. So few tell nothing, and no canary waits for more.
    shop = await Shop.open(await service.url, { canary: { bake_s: 2, min_requests: 1000 } });
    await patient(shop).released(images[0]!);
  });
  after(async () => {
    service?.killAll();
    await service?.exited;
    await docker?.stop();
    await registry?.stop();
    await isolated?.clean();
  });

  /** The service runs with the rate limit of production. */
  const patient = (of: Shop) => Object.assign(of, { pollMs: 150 });

  async function restart(): Promise<void> {
    service = startService(env);
    const next = await Shop.at(await service.url, shop.project);
    shop = patient(next);
  }

  /** What runs is what should run: one container, of the active revision, and nothing else of ours. */
  async function nothingElseRuns(): Promise<void> {
    const { active_revision } = await shop.environment();
    await until(
      'one container of the active revision',
      async () => {
        const containers = await docker.client.listContainers({ all: true });
        const revisions = containers.map(
          ({ Labels }) => Object.entries(Labels).find(([name]) => /revision$/.test(name))?.[1],
        );
        return revisions.length === 1 && `r${revisions[0]!.replace(/^r/, '')}` === active_revision ? true : undefined;
      },
      40_000,
    );
  }

  const states = ['queued', 'preparing', 'starting', 'canary', 'promoting'] as const;
  for (const [index, state] of states.entries()) {
    test(`kill -9 in ${state}: after a restart the canary ends as it would have, and no container is left over`, async () => {
      const image = images[(index + 1) % 2]!;
      const { id } = await shop.deploy(image, { strategy: 'canary', canary_percent: 20 });
      await atLeast(id, state);
      service.killAll();
      await service.exited;
      await restart();
      await shop.reaches(id, 'succeeded');
      await until('the new revision to serve', async () => ((await shop.visit()).image === image ? true : undefined));
      await nothingElseRuns();
    });
  }

  test('kill -9 between the creation of a container and its start: it is started', async () => {
    const id = await abandonedContainer();
    await restart();
    const isRunning = async () => (await docker.client.getContainer(id).inspect()).State.Running;
    await until('the container to run', isRunning, 30_000);
    await until('the service to answer', async () => (await shop.visit()).status === 200);
    await nothingElseRuns();
  });

  /** Stops the service and leaves the one instance as a process that dies between create and start would. */
  async function abandonedContainer(): Promise<string> {
    service.killAll();
    await service.exited;
    const [running] = await docker.client.listContainers({ all: true });
    const old = docker.client.getContainer(running!.Id);
    const { Name, Config, HostConfig } = await old.inspect();
    await old.remove({ force: true });
    const fresh = await docker.client.createContainer({ ...Config, HostConfig, name: Name.slice(1) });
    const database = new DatabaseSync(join(env.SLUICE_DATA_DIR!, 'sluice.db'));
    database.exec("update instance set state = 'starting', host = null, port = null");
    database.close();
    return fresh.id;
  }

  test('kill -9 in aborting: the previous revision serves, and no container is left over', async () => {
    const before = (await shop.environment()).active_revision!;
    const { id } = await shop.deploy(images[0]!, { strategy: 'canary', canary_percent: 20 });
    await shop.reaches(id, 'canary');
    assert.equal((await shop.api('POST', `/deployments/${id}/abort`)).body.state, 'aborting');
    service.killAll();
    await service.exited;
    await restart();
    await shop.reaches(id, 'canceled');
    assert.equal((await shop.environment()).active_revision, before);
    await nothingElseRuns();
  });

  test('dockerd stops during a rollout: 503 for new deployments; once it is back, everything recovers by itself', async () => {
    const { id } = await shop.deploy(images[1]!, { strategy: 'canary', canary_percent: 20 });
    await shop.reaches(id, 'canary');
    await docker.pause();
    const other = (await call(shop.url, 'POST', '/v1/projects', { body: { name: 'other' } })).body.id;
    const path = `/v1/projects/${other}/deployments`;
    const order = { environment: 'production', image: images[0] };
    await regionIs(false);
    const refused = await call(shop.url, 'POST', path, { body: order });
    assert.equal(refused.status, 503);
    assert.equal(refused.body.error.code, 'region_unavailable');
    assert.match(refused.headers.get('retry-after')!, /^\d+$/);
    assert.deepEqual((await call(shop.url, 'GET', path)).body.data, []);
    await docker.resume();
    await regionIs(true);
    await shop.reaches(id, 'succeeded');
    await until('it to serve', async () => ((await shop.visit()).status === 200 ? true : undefined), 40_000);
    await nothingElseRuns();
    const again = await call(shop.url, 'POST', path, { body: order });
    assert.equal(again.status, 201);
    await patient(await Shop.at(shop.url, other)).reaches(again.body.id, 'succeeded');
  });

  async function regionIs(available: boolean): Promise<void> {
    await until(
      `the region to be ${available ? 'there' : 'away'}`,
      async () => {
        const { body } = await call(shop.url, 'GET', '/v1/regions');
        return body.data[0].available === available ? true : undefined;
      },
      20_000,
      200,
    );
  }

  /** Waits until the deployment is in that state or has passed it. */
  async function atLeast(id: string, state: (typeof states)[number]): Promise<Deployment> {
    return until(
      `${id} to be ${state}`,
      async () => {
        const deployment = await shop.deployment(id);
        return deployment.timeline.some((entry) => entry.state === state) ? deployment : undefined;
      },
      60_000,
      shop.pollMs,
    );
  }
});
