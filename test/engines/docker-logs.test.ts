// Logs of real containers, over a service that is killed. `npm run bench -- logs` has the long form.
import assert from 'node:assert/strict';
import { after, describe, test } from 'node:test';
import { isolatedEnv } from '../helpers/app.ts';
import { latestNumber, readCounted } from '../helpers/counted.ts';
import { dockerMissing, startDocker, startRegistry } from '../helpers/docker.ts';
import { pushImage } from '../helpers/images.ts';
import { type Service, startService } from '../helpers/service.ts';
import { Shop } from '../helpers/shop.ts';
import { until } from '../helpers/wait.ts';

const lines = 40_000;

describe('logs on Docker', { skip: dockerMissing }, () => {
  const cleanUp: (() => unknown)[] = [];
  after(async () => {
    for (const step of cleanUp.reverse()) await step();
  });

  test('over kill -9 of the service no line is lost, none comes twice, and all are in order', async () => {
    const [docker, registry, isolated] = await Promise.all([startDocker(), startRegistry(), isolatedEnv()]);
    cleanUp.push(
      isolated.clean,
      () => registry.stop(),
      () => docker.stop(),
    );
    const image = await pushImage(docker, registry, 'counting');
    const env = { ...isolated.env, SLUICE_REGIONS: `local=docker:${docker.socket}` };
    let service: Service = startService(env);
    cleanUp.push(() => service.killAll());
    let url = await service.url;
    const shop = Object.assign(await Shop.open(url, { variables: { LINES: String(lines) } }), { pollMs: 150 });
    await shop.deploy(image);
    await until('a part to be stored', async () => (await latestNumber(url, shop.project)) > 0, 30_000, 150);
    service.killAll();
    await service.exited;
    service = startService(env);
    url = await service.url;
    const last = await until(
      'all of it',
      async () => {
        const number = await latestNumber(url, shop.project);
        return number >= lines && number;
      },
      60_000,
      250,
    );
    assert.equal(last, lines);
    assert.deepEqual(await readCounted(url, shop.project), { inOrder: lines, wrong: null });
  });
});
