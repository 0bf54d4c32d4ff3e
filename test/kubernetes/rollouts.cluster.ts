// Rollouts on a real cluster, under load: every strategy, abort and rollback, a service that is killed at any point, an API
// server that goes away.
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { parse, stringify } from 'yaml';
import type { Pod } from '../../src/engines/kubernetes/kube-objects.ts';
import { call, isolatedEnv } from '../helpers/app.ts';
import { childrenOf } from '../helpers/children.ts';
import { type Service, startService } from '../helpers/service.ts';
import { Shop } from '../helpers/shop.ts';
import { until } from '../helpers/wait.ts';
import { cleanUp, cuttableAccess, imageOf, kubeconfig, list, namespacePrefix, remove } from './cluster.ts';

const images: string[] = [];
for (const tag of ['v1', 'v2']) images.push(await imageOf('web', { image: 'sluice-test-shop', tag }));
const exits = await imageOf('exits');
const way = await cuttableAccess();

/** The kubeconfig of the test, by a way that can be cut. */
function cuttableKubeconfig(folder: string): string {
  const config = parse(readFileSync(kubeconfig, 'utf8'));
  for (const { cluster } of config.clusters) {
    cluster.server = way.access.server;
    cluster['tls-server-name'] = way.access.serverName;
  }
  const path = join(folder, 'kubeconfig');
  writeFileSync(path, stringify(config), { mode: 0o600 });
  return path;
}

describe('on Kubernetes', { timeout: 900_000 }, () => {
  let isolated: Awaited<ReturnType<typeof isolatedEnv>>;
  let env: Record<string, string>;
  let service: Service;
  let shop: Shop;

  before(async () => {
    isolated = await isolatedEnv();
    env = {
      ...isolated.env,
      SLUICE_REGIONS: 'local=kubernetes:',
      SLUICE_KUBECONFIG: cuttableKubeconfig(isolated.dataDir),
      SLUICE_KUBERNETES_NAMESPACE_PREFIX: namespacePrefix,
      // Routers that were killed hold up the end of an instance for as long as their lease.
      SLUICE_ROUTER_LEASE_S: '5',
    };
    service = startService(env);
    shop = await Shop.open(await service.url, {
      replicas: 2,
      drain_s: 1,
      canary: { warmup_s: 0, bake_s: 2, min_requests: 0 },
      health_check: { path: '/', interval_s: 1, healthy_after: 1, start_timeout_s: 60 },
    });
    await patient(shop).released(images[0]!);
  });
  after(async () => {
    service?.killAll();
    await service?.exited;
    await isolated?.clean();
    way.close();
    await cleanUp();
  });

  /** The service runs with the rate limit of production. */
  const patient = (of: Shop) => Object.assign(of, { pollMs: 150 });

  async function restart(): Promise<void> {
    service.killAll();
    await service.exited;
    service = startService(env);
    shop = patient(await Shop.at(await service.url, shop.project));
  }

  /** The routers go on; the supervisor starts another. */
  async function killControl(): Promise<void> {
    const { child } = service;
    const [pid] = childrenOf(child.pid!, 'control.js');
    process.kill(pid!, 'SIGKILL');
    await until('the next one', () => childrenOf(child.pid!, 'control.js').some((other) => other !== pid), 30_000);
    const answers = () =>
      call(shop.url, 'GET', '/v1/regions').then(
        ({ status }) => status === 200,
        () => false,
      );
    await until('it to answer', answers, 60_000, 200);
  }

  const podsOf = async () =>
    (await list<Pod>('/api/v1/pods', `sluice.project=${shop.project}`)).filter(
      ({ metadata }) => metadata.deletionTimestamp === undefined,
    );

  /** What runs is what should run: two pods of the active revision, and nothing else of ours. */
  async function nothingElseRuns(): Promise<void> {
    const { active_revision } = await shop.environment();
    const wanted = [active_revision!.slice(1), active_revision!.slice(1)].join();
    const labelled = `sluice.project=${shop.project}`;
    await until(
      'two pods of the active revision and nothing else',
      async () => {
        const pods = (await podsOf()).map(({ metadata }) => metadata.labels?.['sluice.revision']).join();
        const sets = await list('/apis/apps/v1/replicasets', labelled);
        const secrets = await list('/api/v1/secrets', labelled);
        return pods === wanted && sets.length === 1 && secrets.length === 1;
      },
      60_000,
      500,
    );
  }

  /** Visits while `work` goes on: none may fail. */
  async function underLoad(work: () => Promise<void>): Promise<void> {
    const load = shop.load(2);
    let result: Awaited<ReturnType<typeof load.stop>>;
    try {
      await work();
    } finally {
      result = await load.stop();
    }
    assert.deepEqual(result.failed, [], `of ${result.visits} visits`);
    assert.ok(result.visits > 20, `${result.visits} visits`);
  }

  for (const strategy of ['rolling', 'blue_green', 'canary'] as const) {
    test(`${strategy} under load: no visit fails, and nothing is left over`, async () => {
      const image = (await shop.visit()).image === images[0] ? images[1]! : images[0]!;
      await underLoad(async () => {
        await shop.released(image, { strategy, ...(strategy === 'canary' && { canary_percent: 20 }) });
        assert.equal((await shop.visit()).image, image);
      });
      await nothingElseRuns();
    });
  }

  test('abort of a canary and a rollback under load', async () => {
    const before = (await shop.environment()).active_revision!;
    await underLoad(async () => {
      const { id } = await shop.deploy(images[0]!, { strategy: 'canary', canary_percent: 20 });
      await shop.reaches(id, 'canary');
      assert.equal((await shop.api('POST', `/deployments/${id}/abort`)).status, 200);
      await shop.reaches(id, 'canceled');
      assert.equal((await shop.environment()).active_revision, before);
      const back = await shop.api('POST', '/environments/production/rollback', {});
      assert.equal(back.status, 201, JSON.stringify(back.body));
      await shop.reaches(back.body.id, 'succeeded');
    });
    await nothingElseRuns();
  });

  test('a revision that crashes fails with its exit code and its last lines; the other serves on', async () => {
    await underLoad(async () => {
      const { id } = await shop.deploy(exits);
      const failed = await shop.reaches(id, 'failed');
      assert.equal(failed.failure?.code, 'crashed');
      assert.match(failed.failure!.message, /exit code 3/);
      assert.deepEqual(failed.failure!.log_tail, ['no reason to stay']);
    });
    await nothingElseRuns();
  });

  test('a revision that no node has room for fails with unschedulable, after the timeline has said so', async () => {
    await shop.set({ resources: { memory_mb: 262_144 }, health_check: { start_timeout_s: 8 } });
    const { id } = await shop.deploy(images[0]!);
    const failed = await shop.reaches(id, 'failed');
    await shop.set({ resources: { memory_mb: 512 }, health_check: { start_timeout_s: 60 } });
    assert.equal(failed.failure?.code, 'unschedulable');
    const told = failed.timeline.filter(({ state, message }) => state === 'starting' && /No node/.test(message));
    assert.equal(told.length, 1);
    await nothingElseRuns();
  });

  test('a pod that somebody deletes is replaced, no visit fails, and the deployment is not blamed', async () => {
    const [pod] = await podsOf();
    const { namespace, name } = pod!.metadata;
    const load = shop.load(2);
    await remove(`/api/v1/namespaces/${namespace}/pods/${name}`);
    const isReplaced = async () => {
      const pods = await podsOf();
      const ready = pods.filter(({ status }) => status?.containerStatuses?.[0]?.ready);
      return ready.length === 2 && pods.every(({ metadata }) => metadata.name !== name);
    };
    await until('another', isReplaced, 30_000);
    const isServing = async () => {
      const { body } = await shop.api('GET', '/environments/production/instances');
      const running: { state: string }[] = body.data.filter(({ state }: { state: string }) => state !== 'ended');
      return running.length === 2 && running.every(({ state }) => state === 'healthy');
    };
    await until('both to serve', isServing, 30_000, 200);
    assert.deepEqual((await load.stop()).failed, []);
    await nothingElseRuns();
  });

  const states = ['queued', 'preparing', 'starting', 'canary', 'promoting'] as const;
  const atLeast = (id: string, state: string) =>
    until(
      `${id} to be ${state}`,
      async () => (await shop.deployment(id)).timeline.some((entry) => entry.state === state),
      60_000,
      shop.pollMs,
    );
  for (const [index, state] of states.entries()) {
    test(`kill -9 of the control process in ${state}, under load: no visit fails, it ends as it would have`, async () => {
      const image = images[index % 2]!;
      await underLoad(async () => {
        const { id } = await shop.deploy(image, { strategy: 'canary', canary_percent: 20 });
        await atLeast(id, state);
        await killControl();
        await shop.reaches(id, 'succeeded');
      });
      assert.equal((await shop.visit()).image, image);
      await nothingElseRuns();
    });
  }

  test('kill -9 of the control process in aborting, under load: no visit fails, it ends as it would have', async () => {
    const { image } = await shop.visit();
    await underLoad(async () => {
      const other = image === images[0] ? images[1]! : images[0]!;
      const { id } = await shop.deploy(other, { strategy: 'canary', canary_percent: 20 });
      await atLeast(id, 'canary');
      assert.equal((await shop.api('POST', `/deployments/${id}/abort`)).status, 200);
      await killControl();
      await shop.reaches(id, 'canceled');
    });
    assert.equal((await shop.visit()).image, image);
    await nothingElseRuns();
  });

  test('kill -9 of everything in a canary: after a restart it ends as it would have, and no object is left over', async () => {
    const image = (await shop.visit()).image === images[0] ? images[1]! : images[0]!;
    const { id } = await shop.deploy(image, { strategy: 'canary', canary_percent: 20 });
    await atLeast(id, 'canary');
    await restart();
    await shop.reaches(id, 'succeeded');
    await until('the new revision to serve', async () => (await shop.visit()).image === image, 30_000);
    await nothingElseRuns();
  });

  test('an API server that is away: 503 for new deployments, visitors are served, and all recovers by itself', async () => {
    const regionIs = (available: boolean) =>
      until(
        `the region to be ${available ? 'there' : 'away'}`,
        async () => (await call(shop.url, 'GET', '/v1/regions')).body.data[0].available === available,
        40_000,
        200,
      );
    const { id } = await shop.deploy(images[1]!, { strategy: 'canary', canary_percent: 20 });
    await shop.reaches(id, 'canary');
    const other = (await call(shop.url, 'POST', '/v1/projects', { body: { name: 'other' } })).body.id;
    await underLoad(async () => {
      way.cut();
      await regionIs(false);
      const order = { environment: 'production', image: images[0] };
      const refused = await call(shop.url, 'POST', `/v1/projects/${other}/deployments`, { body: order });
      assert.deepEqual([refused.status, refused.body.error?.code], [503, 'region_unavailable']);
      way.mend();
      await regionIs(true);
      await shop.reaches(id, 'succeeded');
    });
    await nothingElseRuns();
  });
});
