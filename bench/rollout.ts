// How long a deployment takes on Docker against a bare `docker run` of the same image, and what an environment costs that
// has nothing to do. A project has a network of its own, which a bare `docker run` does without: what Docker takes longer
// for that is measured beside it, and is part of what a deployment takes.

import { once } from 'node:events';
import { request } from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';
import { installMissing } from '../scripts/packages.ts';
import { createApp } from '../src/app.ts';
import { readConfig } from '../src/config.ts';
import { isolatedEnv } from '../test/helpers/app.ts';
import { dockerMissing, startDocker, startRegistry, type TestDocker } from '../test/helpers/docker.ts';
import { pushImage } from '../test/helpers/images.ts';
import { Shop } from '../test/helpers/shop.ts';
import { until } from '../test/helpers/wait.ts';
import { median } from './lib/measure.ts';
import { report } from './lib/report.ts';

installMissing(['dockerd', 'docker-registry', 'busybox', 'ip']);
if (!dockerMissing) await onDocker();
else console.log(`no Docker: ${dockerMissing}`);
await idleEnvironments(1000);
process.exit(0);

async function onDocker(): Promise<void> {
  const [docker, registry, isolated] = await Promise.all([startDocker(), startRegistry(), isolatedEnv()]);
  const app = await createApp(readConfig({ ...isolated.env, SLUICE_REGIONS: `local=docker:${docker.socket}` }, false), {
    tokenLimit: 1_000_000,
  });
  try {
    const shop = await Shop.open(app.apiUrl());
    await shop.released(await pushImage(docker, registry, 'web', { image: 'shop', tag: 'v0' }));
    const bare: number[] = [];
    const networked: number[] = [];
    const ours: number[] = [];
    const network = (await docker.client.listNetworks()).find(({ Name }) => Name.endsWith(shop.project))!.Name;
    for (let round = 1; round <= 7; round++) {
      const image = await pushImage(docker, registry, 'web', { image: 'shop', tag: `a${round}` });
      bare.push(await timed(() => bareRun(docker, image)));
      const inNetwork = await pushImage(docker, registry, 'web', { image: 'shop', tag: `n${round}` });
      networked.push(await timed(() => bareRun(docker, inNetwork, network)));
      const other = await pushImage(docker, registry, 'web', { image: 'shop', tag: `b${round}` });
      ours.push(await timed(() => deployed(shop, other)));
      await until('the deployment to end', async () =>
        (await shop.environment()).in_progress_deployment ? undefined : true,
      );
    }
    const more = median(ours) - median(bare);
    const ms = (took: number[]) => median(took).toFixed(0);
    const of = `from the request to the first answer, with the pull: ${ms(ours)} and ${ms(bare)} ms; bare in a network of its own ${ms(networked)} ms`;
    report('deployment on Docker − a bare `docker run`', seconds(more), '≤ 0.3 s', more <= 300, of);
  } finally {
    await app.stop();
    await Promise.all([docker.stop(), registry.stop(), isolated.clean()]);
  }
}

function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(2)} s`;
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const begun = performance.now();
  await work();
  return performance.now() - begun;
}

async function deployed(shop: Shop, image: string): Promise<void> {
  await shop.deploy(image, { strategy: 'blue_green' });
  await soon(async () => (await shop.visit()).image === image);
}

/** Asked at the same pace for both, and so often that the pace hardly counts. */
async function soon(ask: () => Promise<boolean>): Promise<void> {
  const giveUpAt = performance.now() + 60_000;
  while (!(await ask())) {
    if (performance.now() > giveUpAt) throw new Error('no answer in a minute');
    await pause(10);
  }
}

async function bareRun({ client }: TestDocker, image: string, network?: string): Promise<void> {
  await client.pull(image);
  const container = await client.createContainer({
    Image: image,
    Env: ['PORT=8080'],
    ExposedPorts: { '8080/tcp': {} },
    HostConfig: {
      PortBindings: { '8080/tcp': [{ HostIp: '127.0.0.1', HostPort: '' }] },
      ...(network !== undefined && { NetworkMode: network }),
    },
  });
  await container.start();
  const { NetworkSettings } = await container.inspect();
  const port = NetworkSettings.Ports['8080/tcp']![0]!.HostPort;
  await soon(() => answers(Number(port)));
  await container.remove({ force: true });
}

async function answers(port: number): Promise<boolean> {
  const asked = request({ host: '127.0.0.1', port, agent: false }).end();
  try {
    await once(asked, 'response');
    return true;
  } catch {
    return false;
  } finally {
    asked.destroy();
  }
}

/** The processor time that so many live environments take while nobody deploys, against none. */
async function idleEnvironments(count: number): Promise<void> {
  const isolated = await isolatedEnv();
  const env = { ...isolated.env, SLUICE_INSTANCE_PORTS: '30000-32700' };
  const app = await createApp(readConfig(env, false), { tokenLimit: 1_000_000_000 });
  const without = await processorShare(10_000);
  for (let made = 0; made < count; made += 50) {
    const shops = await Promise.all(
      Array.from({ length: 50 }, () => Shop.open(app.apiUrl(), { health_check: { interval_s: 30 } })),
    );
    await Promise.all(shops.map((shop) => shop.released('registry.example/idle:1')));
  }
  await processorShare(15_000); // until all have come to rest
  const share = (await processorShare(30_000)) - without;
  const of = `${((share * 1e6) / count).toFixed(1)} µs per second and environment; stand-in, SQLite`;
  const shown = `${(share * 100).toFixed(1)} % of a core`;
  report(`${count.toLocaleString('en')} idle environments`, shown, '≤ 0.5 %', share <= 0.005, of);
  await app.stop();
  await isolated.clean();
}

async function processorShare(forMs: number): Promise<number> {
  const before = process.cpuUsage();
  await new Promise((resolve) => setTimeout(resolve, forMs));
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000 / forMs;
}
