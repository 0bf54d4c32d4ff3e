// Deployments that fail on a real Docker engine: each names its cause and what to do about it.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { Deployment } from '../../src/contract/deployments.ts';
import type { Instance } from '../../src/contract/instances.ts';
import { listInstances } from '../../src/deployments/instance-queries.ts';
import { listens } from '../../src/deployments/reconcile/refresh-instances.ts';
import { createDockerEngine } from '../../src/engines/docker/docker.ts';
import { startApp, type TestApp } from '../helpers/app.ts';
import { dockerMissing, startDocker, startRegistry, type TestDocker, type TestRegistry } from '../helpers/docker.ts';
import { type ImageKind, pushImage } from '../helpers/images.ts';
import { Shop } from '../helpers/shop.ts';
import { until } from '../helpers/wait.ts';

describe('failures on Docker', { skip: dockerMissing, concurrency: 4 }, () => {
  let docker: TestDocker;
  let registry: TestRegistry;
  let t: TestApp;
  let web: string;

  before(async () => {
    [docker, registry] = await Promise.all([startDocker(), startRegistry()]);
    web = await push('web');
    t = await startApp({ tokenLimit: 1_000_000, env: { SLUICE_REGIONS: `local=docker:${docker.socket}` } });
  });
  after(async () => {
    await t?.stop();
    await docker?.stop();
    await registry?.stop();
  });

  const push = (kind: ImageKind, more: object = {}) => pushImage(docker, registry, kind, more);
  const open = (settings: object = {}) => Shop.open(t.url, settings);
  const impatient = { health_check: { start_timeout_s: 20 } };

  async function failureOf(shop: Shop, image: string): Promise<NonNullable<Deployment['failure']>> {
    const { id } = await shop.deploy(image);
    return (await shop.reaches(id, 'failed')).failure!;
  }

  const instancesOf = async (shop: Shop): Promise<Instance[]> =>
    (await shop.api('GET', '/environments/production/instances')).body.data;

  test('out of memory: out_of_memory with the limit, at the first time, and the end says so', async () => {
    const shop = await open();
    const { id } = await shop.deploy(await push('hungry'));
    const ended = await until(
      'the end',
      async () => (await instancesOf(shop)).find(({ ended }) => ended !== null)?.ended,
      60_000,
    );
    const knownAt = performance.now();
    const { failure } = await shop.reaches(id, 'failed');
    const tookMs = performance.now() - knownAt;
    assert.equal(ended.reason, 'out_of_memory');
    assert.equal(ended.exit_code, 137);
    assert.equal(failure!.code, 'out_of_memory');
    assert.match(failure!.message, /its limit of 512 MB \(peak 512 MB\)\. Give the environment more memory/);
    assert.ok(tookMs < 5000, `it took ${tookMs} ms`);
  });

  test('killed by a signal from outside: the end says killed, and another instance takes its place', async () => {
    const shop = await open();
    await shop.released(web);
    const [container] = await docker.client.listContainers({ filters: { label: [`sluice.project=${shop.project}`] } });
    await docker.client.getContainer(container!.Id).kill();
    const [next, killed] = await until('another', async () => {
      const found = await instancesOf(shop);
      return found.length === 2 && found[0]!.state === 'healthy' && found[0]!.last_check ? found : undefined;
    });
    assert.deepEqual([killed!.ended!.reason, killed!.ended!.exit_code], ['killed', 137]);
    assert.equal(next!.restarts, 1);
    assert.ok(next!.node);
    assert.deepEqual([next!.last_check!.ok, next!.last_check!.message], [true, 'connected']);
  });

  test('one that has ended is not believed to listen, whatever accepted the connection', async (context) => {
    const shop = await open();
    await shop.released(web);
    const { db } = t.app.store;
    const [row] = await listInstances(db, { projectId: shop.project, environment: 'production' });
    const [container] = await docker.client.listContainers({ filters: { label: [`sluice.project=${shop.project}`] } });
    const installation = container!.Labels['sluice.installation']!;
    const engine = await createDockerEngine({ address: docker.socket, installation });
    context.after(() => engine.close());
    assert.equal(await listens(db, engine, row!), true);
    await docker.client.getContainer(container!.Id).kill();
    assert.equal(await listens(db, engine, row!), false);
  });

  test('removed by hand: not_found', async () => {
    const shop = await open();
    await shop.released(web);
    const [container] = await docker.client.listContainers({ filters: { label: [`sluice.project=${shop.project}`] } });
    await docker.client.getContainer(container!.Id).remove({ force: true });
    const gone = await until(
      'its end',
      async () => (await instancesOf(shop)).find(({ ended }) => ended !== null)?.ended,
      30_000,
    );
    assert.deepEqual([gone.reason, gone.exit_code], ['not_found', null]);
  });

  test('nothing listens on the port: port_not_listening with the ports it listens on and those of the image', async () => {
    const failure = await failureOf(
      await open({ ...impatient, port: 8080 }),
      await push('elsewhere', { expose: [3000, 3001] }),
    );
    assert.equal(failure.code, 'port_not_listening');
    assert.match(
      failure.message,
      /nothing listens on port 8080\. It listens on port 3000; its image exposes ports 3000, 3001\. Make it listen on/,
    );
  });

  test('a program that listens on loopback alone is told so', async () => {
    const failure = await failureOf(await open(impatient), await push('local'));
    assert.equal(failure.code, 'port_not_listening');
    assert.match(failure.message, /port 8080 of its loopback address alone.*Make it listen on 0\.0\.0\.0\./);
  });

  test('a program that listens and does not answer: start_timeout with what the last check said', async () => {
    const check = { path: '/cgi-bin/slow', timeout_s: 1, start_timeout_s: 20 };
    const failure = await failureOf(await open({ health_check: check }), await push('slow'));
    assert.equal(failure.code, 'start_timeout');
    assert.match(failure.message, /The last check said: \/cgi-bin\/slow: no answer in time\. .*start_timeout_s/);
  });

  test('the only port that an image exposes is that of an environment that set none', async () => {
    const image = await push('elsewhere', { tag: 'one-port', expose: [3000] });
    const shop = await open();
    assert.equal((await shop.environment()).port, 8080);
    const { id } = await shop.released(image);
    assert.equal((await shop.visit()).status, 200);
    assert.equal((await shop.environment()).port, 3000);
    const { timeline } = await shop.deployment(id);
    assert.ok(timeline.some(({ message }) => /It exposes port 3000, and the environment sets none/.test(message)));
    await shop.set({ ...impatient, port: 8080 });
    assert.equal((await failureOf(shop, image)).code, 'port_not_listening', 'a port that is set counts');
    assert.equal((await shop.visit()).revision, 'r1');
  });
});
