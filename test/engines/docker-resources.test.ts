// What instances may use and do use, on a real Docker engine.
import assert from 'node:assert/strict';
import { cpus } from 'node:os';
import { after, before, describe, test } from 'node:test';
import type { Usage } from '../../src/contract/metrics.ts';
import { createDockerEngine } from '../../src/engines/docker/docker.ts';
import { systemTimers } from '../../src/lib/clock.ts';
import { startApp, type TestApp } from '../helpers/app.ts';
import { dockerMissing, startDocker, startRegistry, type TestDocker, type TestRegistry } from '../helpers/docker.ts';
import { hangingDocker } from '../helpers/hanging-docker.ts';
import { pushImage } from '../helpers/images.ts';
import { ids, specOf, startReady } from '../helpers/instances.ts';
import { Shop } from '../helpers/shop.ts';
import { until } from '../helpers/wait.ts';

/** Loops that wait for ten seconds, as measuring does, wait for half a second. */
const timers = {
  ...systemTimers,
  after: (ms: number, work: () => void) => systemTimers.after(ms === 10_000 ? 500 : ms, work),
};

describe('resources on Docker', { skip: dockerMissing }, () => {
  let docker: TestDocker;
  let registry: TestRegistry;
  let t: TestApp;
  let image: string;

  before(async () => {
    [docker, registry] = await Promise.all([startDocker(), startRegistry()]);
    image = await pushImage(docker, registry, 'web', { image: 'shop' });
    t = await startApp({ timers, tokenLimit: 1_000_000, env: { SLUICE_REGIONS: `local=docker:${docker.socket}` } });
  });
  after(async () => {
    await t?.stop();
    await docker?.stop();
    await registry?.stop();
  });

  /** The one container of the active revision. */
  async function containerOf(shop: Shop) {
    const { active_revision } = await shop.environment();
    const filters = { label: [`sluice.project=${shop.project}`, `sluice.revision=${active_revision!.slice(1)}`] };
    const [found] = await docker.client.listContainers({ filters });
    const { HostConfig, Image } = await docker.client.getContainer(found!.Id).inspect();
    return { Image, id: found!.Id, memoryMb: HostConfig.Memory! / 1024 / 1024, cpus: HostConfig.NanoCpus! / 1e9 };
  }

  test('limits are those of the revision; a redeploy brings new ones to the same image, though its tag has moved', async () => {
    const shop = await Shop.open(t.url, { resources: { memory_mb: 64, cpus: 0.25 } });
    await shop.released(image);
    const first = await containerOf(shop);
    assert.deepEqual([first.memoryMb, first.cpus], [64, 0.25]);
    await pushImage(docker, registry, 'stubborn', { image: 'shop' });
    await shop.set({ resources: { memory_mb: 96 } });
    assert.deepEqual(await containerOf(shop), first);
    const { body } = await shop.api('POST', '/environments/production/redeploy');
    await shop.reaches(body.id, 'succeeded');
    const second = await containerOf(shop);
    assert.deepEqual([second.memoryMb, second.cpus, second.Image], [96, 0.25, first.Image]);
    assert.notEqual(second.id, first.id);
  });

  test('more CPUs than the machine has: the deployment fails and says so', async (c) => {
    if (cpus().length >= 64) return c.skip('this machine has as many as an environment may ask for');
    const shop = await Shop.open(t.url, { resources: { cpus: 64 } });
    const { failure } = await shop.reaches((await shop.deploy(image)).id, 'failed');
    assert.equal(
      failure!.message,
      `An instance could not be started: it is to have 64 CPUs, and the machine has ${cpus().length}: lower resources.cpus`,
    );
  });

  test('memory and CPU of every instance are measured and can be read', async () => {
    const shop = await Shop.open(t.url, { replicas: 2, resources: { memory_mb: 64, cpus: 0.5 } });
    await shop.released(image);
    const load = shop.load(2);
    const { series } = await until('both instances to have used CPU', async () => {
      const { body } = await shop.api('GET', '/environments/production/usage?step_s=10');
      const all = (body as Usage).series;
      return all.length === 2 && all.every(({ points }) => points.some(({ cpus }) => cpus)) ? (body as Usage) : null;
    });
    assert.deepEqual((await load.stop()).failed, []);
    for (const { limits, points, revision } of series) {
      assert.deepEqual([limits, revision], [{ memory_mb: 64, cpus: 0.5 }, 'r1']);
      const { memory_bytes, cpus } = points.findLast((point) => point.cpus !== null)!;
      assert.ok(memory_bytes! > 50_000 && memory_bytes! < 64 * 1024 * 1024, `${memory_bytes} bytes`);
      assert.ok(cpus! > 0 && cpus! < 0.8, `${cpus} CPUs`);
    }
    const { body: text } = await t.call('GET', '/metrics');
    const shown = (text as string).split('\n').filter((line) => line.includes(shop.project));
    assert.equal(shown.filter((line) => /^sluice_instance_memory_bytes\{.*\} \d+$/.test(line)).length, 2);
    assert.equal(shown.filter((line) => /^sluice_instance_cpu_seconds_total\{.*\} [\d.]+$/.test(line)).length, 2);
  });

  test('an engine that does not say what is used is given up on, and what it does say counts', async () => {
    const proxy = await hangingDocker(docker.socket);
    const where = { address: proxy.address, installation: ids('usage') };
    const [engine, hasty] = [
      await createDockerEngine(where),
      await createDockerEngine({ ...where, timeouts: { usage: 100 } }),
    ];
    try {
      const web = { image, variables: {} };
      const [one, two] = [await specOf(engine, web), await specOf(engine, web)];
      await startReady(engine, one);
      await startReady(engine, two);
      proxy.hang(new RegExp(`^GET /containers/\\S*${two.id}/stats`));
      const usage = await engine.usage!([one.id, two.id, 'ins_gone']);
      assert.deepEqual([...usage.keys()], [one.id]);
      assert.ok(usage.get(one.id)!.memoryBytes > 0);
      proxy.hang(/^GET \/containers\/\S*\/stats/);
      const many = Array.from({ length: 100 }, (_, n) => `ins_${n}`);
      assert.equal((await hasty.usage!(many)).size, 0);
      assert.ok(proxy.taken() < 40, `${proxy.taken()} calls to an engine that hangs`);
      proxy.release();
      for (const { id } of [one, two]) await engine.stop(id, 0);
    } finally {
      proxy.release();
      await Promise.all([engine.close(), hasty.close()]);
      proxy.stop();
    }
  });
});
