// What a region's engine is, is decided once: an engine that is away at a later start does not become another one.
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { type App, createApp } from '../../../src/app.ts';
import { readConfig } from '../../../src/config.ts';
import { call, isolatedEnv } from '../../helpers/app.ts';
import { cli } from '../../helpers/cli.ts';
import { dockerMissing, startDocker, startRegistry } from '../../helpers/docker.ts';
import { pushImage } from '../../helpers/images.ts';
import { Shop } from '../../helpers/shop.ts';
import { until } from '../../helpers/wait.ts';
import { image } from './deployments-fixture.ts';

/** An installation that is started with one setting after another. */
async function install() {
  const isolated = await isolatedEnv();
  let app: App | null = null;
  after(async () => {
    await app?.stop();
    await isolated.clean();
  });
  const envOf = (regions: string) => ({ ...isolated.env, SLUICE_REGIONS: regions });
  return {
    async restart(regions: string): Promise<App> {
      await app?.stop();
      app = await createApp(readConfig(envOf(regions), false));
      return app;
    },
    async doctor(regions: string): Promise<string> {
      return (await cli(['doctor'], envOf(regions))).stdout;
    },
  };
}

const regionOf = async (app: App) => (await call(app.apiUrl(), 'GET', '/v1/regions')).body.data[0];

test('auto decides once, and says at later starts that it has', async () => {
  const { restart, doctor } = await install();
  const first = await restart('local=auto');
  assert.doesNotMatch(first.regionLines[0]!, /remembered/);
  const { engine } = await regionOf(first);
  const again = await restart('local=auto');
  assert.match(again.regionLines[0]!, /^region local: .*, remembered from an earlier start/);
  assert.equal((await regionOf(again)).engine, engine);
  assert.match(await doctor('local=auto'), /region local +.*remembered from an earlier start/);
});

test('an engine that is named always counts; instances of the old one are told of, with what removes them', async () => {
  const { restart } = await install();
  const named = await restart('local=standin:');
  assert.deepEqual(named.regionLines, ['region local: the stand-in, which starts no containers, as set']);
  const shop = await Shop.open(named.apiUrl());
  await shop.released(image(1));
  const { regionLines } = await restart('local=docker:/nowhere/docker.sock');
  assert.equal(regionLines[0], 'region local: Docker at /nowhere/docker.sock, as set');
  assert.match(
    regionLines[1]!,
    /^region local: WARNING: its engine was standin: and is docker:\/nowhere\/docker\.sock/,
  );
  assert.match(regionLines[1]!, /Its instances \(1\) are started anew/);
  const { regionLines: back } = await restart('local=standin:');
  assert.match(back[1]!, /docker rm -f \$\(docker ps -aq --filter label=sluice\.installation=[0-9a-f]+-local\)/);
});

test('doctor says what a drain costs environments with one instance, on Kubernetes', async () => {
  const { restart, doctor } = await install();
  const shop = await Shop.open((await restart('local=standin:')).apiUrl());
  await shop.released(image(1));
  assert.doesNotMatch(await doctor('local=standin:'), /drains/);
  assert.match(await doctor('local=kubernetes:'), /note +drains local +environments with one instance: 1\..*503/);
  await shop.set({ replicas: 2 });
  assert.doesNotMatch(await doctor('local=kubernetes:'), /drains/);
});

test('Docker that is away at a start with auto: unavailable, not the stand-in; its hosts serve again once it is back', {
  skip: dockerMissing,
}, async () => {
  const { restart, doctor } = await install();
  const [docker, registry] = await Promise.all([startDocker(), startRegistry()]);
  after(() => Promise.all([docker.stop(), registry.stop()]));
  const web = await pushImage(docker, registry, 'web');
  const begun = await restart(`local=docker:${docker.socket}`);
  const { project } = await released(begun, web);
  await docker.pause();

  const app = await restart('local=auto');
  assert.deepEqual(app.regionLines, [`region local: Docker at ${docker.socket}, remembered from an earlier start`]);
  assert.deepEqual(await regionOf(app).then(({ engine, available }) => [engine, available]), ['docker', false]);
  const shop = await Shop.at(app.apiUrl(), project);
  const refused = await shop.api('POST', '/deployments', { environment: 'production', image: web });
  assert.deepEqual([refused.status, refused.body.error.code], [503, 'region_unavailable']);
  assert.notEqual((await shop.visit()).status, 200, 'nothing answers in its place');
  assert.match(await doctor('local=auto'), /problem +region local +Docker at .*remembered/);

  await docker.resume();
  await until('its host to serve', async () => (await shop.visit()).image === web, 30_000, 200);
});

async function released(app: App, web: string): Promise<Shop> {
  const shop = await Shop.open(app.apiUrl());
  await shop.released(web);
  return shop;
}
