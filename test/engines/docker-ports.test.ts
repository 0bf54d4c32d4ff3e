// A hostname never leads to another project's instance, whatever a restart of dockerd does to the instances: a router may
// still have the table from before.
import assert from 'node:assert/strict';
import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { after, before, describe, test } from 'node:test';
import { createDockerEngine } from '../../src/engines/docker/docker.ts';
import { startApp, type TestApp } from '../helpers/app.ts';
import { dockerMissing, startDocker, startRegistry, type TestDocker, type TestRegistry } from '../helpers/docker.ts';
import { pushImage } from '../helpers/images.ts';
import { ids, specOf, startReady } from '../helpers/instances.ts';
import { Shop } from '../helpers/shop.ts';
import { until } from '../helpers/wait.ts';
import { isFault } from './faults.ts';

const projects = 6;

interface Instance {
  id: string;
  project: string;
  state: string;
  port: number | null;
}

describe('ports of containers', { skip: dockerMissing }, () => {
  let docker: TestDocker;
  let registry: TestRegistry;
  let t: TestApp;
  let image: string;
  let shops: Shop[];
  /** Every instance there has been, also those that are gone: an answer names the one it is from. */
  const ownerOf = new Map<string, string>();

  before(async () => {
    [docker, registry] = await Promise.all([startDocker(), startRegistry()]);
    image = await pushImage(docker, registry, 'web');
    t = await startApp({ tokenLimit: 1_000_000, env: { SLUICE_REGIONS: `local=docker:${docker.socket}` } });
    shops = [];
    for (let i = 0; i <= projects; i++) {
      const shop = await Shop.open(t.url);
      await shop.released(image, { strategy: 'blue_green' });
      shops.push(shop);
    }
    // Docker, left to itself, gives out ports in order: without the first project, each would get that of another.
    await shops.shift()!.api('DELETE', '');
    await until('its end', async () => (await docker.client.listContainers()).length === projects, 60_000);
  });
  after(async () => {
    await t?.stop();
    await docker?.stop();
    await registry?.stop();
  });

  async function listInstances(): Promise<Instance[]> {
    const rows = await t.app.store.db
      .selectFrom('instance')
      .select(['id', 'project_id as project', 'state', 'port'])
      .execute();
    for (const { id, project } of rows) ownerOf.set(id, project);
    return rows;
  }

  const healthy = async () => {
    const all = await listInstances();
    return all.length === projects && all.every(({ state }) => state === 'healthy') && all;
  };

  /** The project whose instance answers; null: none does. */
  async function askPort(port: number): Promise<string | null> {
    const answer = await fetch(`http://127.0.0.1:${port}/`).then(
      (response) => response.text(),
      () => null,
    );
    return answer === null ? null : projectIn(answer);
  }

  function projectIn(body: string): string {
    const { instance } = JSON.parse(body) as { instance: string };
    return ownerOf.get(instance) ?? `that of ${instance}`;
  }

  /** Visits all hosts again and again. */
  function visitAll() {
    const counts = { right: 0, failed: 0 };
    const wrong: string[] = [];
    let goesOn = true;
    const visit = async (shop: Shop) => {
      while (goesOn) {
        const { status, body } = await shop.visit().catch(() => ({ status: 0, body: '' }));
        if (status === 200) await listInstances();
        const from = status === 200 ? projectIn(body) : null;
        if (from === null) counts.failed++;
        else if (from === shop.project) counts.right++;
        else wrong.push(`${shop.project} was answered by ${from}`);
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
    };
    const visitors = shops.map(visit);
    return async () => {
      goesOn = false;
      await Promise.all(visitors);
      return { ...counts, wrong };
    };
  }

  for (const end of ['pause', 'kill'] as const) {
    test(`a dockerd that restarts (${end}): no host and no old address is answered by another project`, async (context) => {
      const old = await until('all to be healthy', healthy, 60_000);
      const endVisits = visitAll();
      await docker[end]();
      await docker.resume();
      const isNew = async () => {
        const all = (await healthy()) || [];
        return all.length > 0 && all.every(({ id }) => !old.some((one) => one.id === id)) && all;
      };
      const now = await until('all to be back', isNew, 120_000);
      for (const shop of shops) await until('an answer', async () => (await shop.visit()).status === 200, 60_000);
      const { right, failed, wrong } = await endVisits();
      context.diagnostic(`${right} answers of the right project, ${failed} errors, ${wrong.length} of another project`);
      assert.deepEqual(wrong, []);
      assert.ok(right > 0);
      // What a router with the table from before would get.
      for (const { project, port } of old) {
        const from = await askPort(port!);
        assert.ok(from === null || from === project, `${port} was that of ${project}, and ${from} answers there`);
      }
      for (const { port } of now) assert.ok(20_000 <= port! && port! <= 29_999, `${port}`);
    });
  }

  /** Outside the range from which the kernel gives out ports. */
  async function unusedPort(): Promise<number> {
    const port = randomInt(10_000, 19_000);
    const server = createServer().listen(port, '127.0.0.1');
    const isFree = await once(server, 'listening').then(
      () => true,
      () => false,
    );
    server.close();
    return isFree ? port : unusedPort();
  }

  /** An instance without a service that looks after it. */
  async function startAlone(hostPort: number) {
    const engine = await createDockerEngine({ address: docker.socket, installation: ids('alone') });
    const spec = await specOf(engine, { image, variables: {} }, { hostPort });
    return { engine, spec, start: () => startReady(engine, spec) };
  }

  test('a container keeps its port when it is started again after a restart of dockerd', async () => {
    const hostPort = await unusedPort();
    const { engine, spec, start } = await startAlone(hostPort);
    const where = { host: '127.0.0.1', port: hostPort };
    assert.deepEqual((await start()).address, where);
    await docker.pause();
    await docker.resume();
    const label = [`sluice.instance=${spec.id}`];
    const [ended] = await docker.client.listContainers({ all: true, filters: { label } });
    await docker.client.getContainer(ended!.Id).start();
    assert.deepEqual((await engine.list())[0]?.address, where);
    await engine.stop(spec.id, 0);
    await engine.close();
  });

  test('a port that a foreign program has is told apart from what cannot start, and nothing is left', async (context) => {
    const foreign = createServer().listen(0, '127.0.0.1');
    context.after(() => foreign.close());
    await once(foreign, 'listening');
    const { engine, spec } = await startAlone((foreign.address() as AddressInfo).port);
    await assert.rejects(engine.start(spec), isFault('port_taken'));
    assert.deepEqual(await engine.list(), []);
    await engine.close();
  });

  test('a port that another container has, too', async () => {
    const hostPort = await unusedPort();
    const one = await startAlone(hostPort);
    await one.start();
    const two = await startAlone(hostPort);
    await assert.rejects(two.engine.start(two.spec), isFault('port_taken'));
    assert.deepEqual(await two.engine.list(), []);
    await one.engine.stop(one.spec.id, 0);
    for (const { engine } of [one, two]) await engine.close();
  });
});
