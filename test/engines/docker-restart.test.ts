// A dockerd that is restarted ends everything it runs. That is no crash of what ran: all of it comes back at once, however
// much it is.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { pino } from 'pino';
import { startApp, type TestApp } from '../helpers/app.ts';
import { dockerMissing, startDocker, startRegistry, type TestDocker, type TestRegistry } from '../helpers/docker.ts';
import { pushImage } from '../helpers/images.ts';
import { Shop } from '../helpers/shop.ts';
import { until } from '../helpers/wait.ts';

const others = [8, 1, 1];
const total = 1 + others.reduce((sum, replicas) => sum + replicas);

describe('a restart of dockerd', { skip: dockerMissing }, () => {
  let docker: TestDocker;
  let registry: TestRegistry;
  let t: TestApp;
  let image: string;
  const lines: string[] = [];
  const log = pino({ level: 'info' }, { write: (line: string) => void lines.push(line) });
  const crashes = () => lines.filter((line) => line.includes('An instance ended'));

  before(async () => {
    [docker, registry] = await Promise.all([startDocker(), startRegistry()]);
    image = await pushImage(docker, registry, 'web');
    t = await startApp({ log, tokenLimit: 1_000_000, env: { SLUICE_REGIONS: `local=docker:${docker.socket}` } });
  });
  after(async () => {
    await t?.stop();
    await docker?.stop();
    await registry?.stop();
  });

  const release = async (replicas: number): Promise<void> => {
    const shop = await Shop.open(t.url, { replicas });
    await shop.released(image, { strategy: 'blue_green' });
  };

  const healthyIds = async (): Promise<string[]> => {
    const rows = await t.app.store.db.selectFrom('instance').select(['id', 'state']).execute();
    return rows.filter(({ state }) => state === 'healthy').map(({ id }) => id);
  };

  /** How long it takes until as many other instances are healthy as there were before. */
  async function restartMs(end: () => Promise<void>): Promise<number> {
    const old = new Set(await healthyIds());
    const begun = performance.now();
    await end();
    await docker.resume();
    const allAreBack = async () => (await healthyIds()).filter((id) => !old.has(id)).length === old.size;
    await until(`${old.size} instances to be back`, allAreBack, 60_000);
    return performance.now() - begun;
  }

  /** How long Docker itself takes to restart and to start that many containers, all at once. */
  async function bareMs(count: number): Promise<number> {
    const options = { Image: image, Env: ['PORT=8080'], HostConfig: { Init: true } };
    const containers = await Promise.all(Array.from({ length: count }, () => docker.client.createContainer(options)));
    const startAll = () => Promise.all(containers.map((container) => container.start()));
    await startAll();
    const begun = performance.now();
    await docker.pause();
    await docker.resume();
    await startAll();
    const tookMs = performance.now() - begun;
    await Promise.all(containers.map((container) => container.remove({ force: true })));
    return tookMs;
  }

  test('all replicas of all environments are back within one and a half times the time of one', async (context) => {
    await release(1);
    const one = await restartMs(() => docker.pause());
    for (const replicas of others) await release(replicas);
    const figures: string[] = [];
    const isSoon = async () => {
      const all = await restartMs(() => docker.pause());
      // What Docker itself takes longer to end and start more containers is not ours to save.
      const dockers = (await bareMs(total)) - (await bareMs(1));
      const [a, b, c] = [one, all, dockers].map(Math.round);
      figures.push(`1 replica: ${a} ms, ${total} replicas: ${b} ms, of which Docker’s own: ${c} ms`);
      context.diagnostic(figures.at(-1)!);
      return all <= 1.5 * one + Math.max(0, dockers);
    };
    // Another load on the machine may fall on one of the measurements.
    assert.ok((await isSoon()) || (await isSoon()), figures.join('; '));
    assert.deepEqual(crashes(), [], 'none of it is a crash');
  });

  test('a dockerd that was killed ends them when it starts again: no crash either', async () => {
    await restartMs(() => docker.kill());
    assert.deepEqual(crashes(), []);
  });
});
