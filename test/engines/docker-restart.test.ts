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
  const crashes = () => lines.filter((line) => line.includes('An instance ended')).length;

  before(async () => {
    [docker, registry] = await Promise.all([startDocker(), startRegistry()]);
    image = await pushImage(docker, registry, 'web');
    t = await startApp({ log, tokenLimit: 1_000_000, env: { SLUICE_REGIONS: `local=docker:${docker.socket}` } });
    await release(1);
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

  const listInstances = () => t.app.store.db.selectFrom('instance').select(['id', 'state', 'created_at']).execute();

  /**
   * From the moment that dockerd answers again: until the last start was asked for, and until as many others are healthy as
   * there were before. What lies between the two is what Docker takes, which depends on the cores of the machine.
   */
  async function restart(end: () => Promise<void>): Promise<{ askedMs: number; backMs: number }> {
    const old = new Set((await listInstances()).map(({ id }) => id));
    await end();
    await docker.resume();
    const resumedAt = Date.now();
    const all = await until(
      `${old.size} instances to be back`,
      async () => {
        const others = (await listInstances()).filter(({ id, state }) => !old.has(id) && state === 'healthy');
        return others.length === old.size && others;
      },
      60_000,
    );
    const askedAt = Math.max(...all.map(({ created_at }) => Number(created_at)));
    return { askedMs: askedAt - resumedAt, backMs: Date.now() - resumedAt };
  }

  test('a dockerd that was killed ends what it ran when it starts again: that is no crash', async () => {
    await restart(() => docker.kill());
    assert.equal(crashes(), 0);
  });

  test('all replicas of all environments are started within one and a half times the time of one', async (context) => {
    const one = await restart(() => docker.pause());
    for (const replicas of others) await release(replicas);
    const isSoon = async () => {
      const all = await restart(() => docker.pause());
      context.diagnostic(
        `1 replica was back after ${one.backMs} ms; of ${total} the last was started after ${all.askedMs} ms and back after ${all.backMs} ms`,
      );
      return all.askedMs <= 1.5 * one.backMs;
    };
    // Another load on the machine may fall on some of the measurements.
    assert.ok((await isSoon()) || (await isSoon()) || (await isSoon()) || (await isSoon()));
    assert.equal(crashes(), 0, 'none of it is a crash');
  });
});
