// SLUICE_TEST_KUBECONFIG=… SLUICE_TEST_REGISTRY=host:port npm run bench -- kubernetes: how long a deployment takes on a
// real cluster, against a bare ReplicaSet of the same pod; and what 1,000 sets cost that nothing happens to.
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { environmentDefaults } from '../src/contract/environments.ts';
import type { InstanceSet } from '../src/engines/engine.ts';
import { fieldManager } from '../src/engines/kubernetes/kube-client.ts';
import type { Pod } from '../src/engines/kubernetes/kube-objects.ts';
import { createKubernetesEngine } from '../src/engines/kubernetes/kubernetes.ts';
import { replicaSetOf } from '../src/engines/kubernetes/manifests.ts';
import { createRegistry } from '../src/engines/registry/registry.ts';
import { isolatedEnv } from '../test/helpers/app.ts';
import { startService } from '../test/helpers/service.ts';
import { Shop } from '../test/helpers/shop.ts';
import { until } from '../test/helpers/wait.ts';
import { median } from './lib/measure.ts';
import { note, report } from './lib/report.ts';

const rounds = 7;
const sets = 1000;
const moreMs = 500;

if (process.env.SLUICE_TEST_KUBECONFIG) await rollouts();
else console.log('no cluster: SLUICE_TEST_KUBECONFIG and SLUICE_TEST_REGISTRY say which (docs/testing.md)');
await idle();
process.exit(0);

async function rollouts(): Promise<void> {
  const { cleanUp, cluster, imageOf, kubeconfig, list, namespacePrefix } = await import(
    '../test/kubernetes/cluster.ts'
  );
  const registry = createRegistry();
  const images: string[] = [];
  for (const tag of ['v1', 'v2']) images.push(await imageOf('web', { image: 'sluice-test-shop', tag }));
  const namespace = `${namespacePrefix}bare`;
  await cluster.request({ method: 'POST', path: '/api/v1/namespaces', body: { metadata: { name: namespace } } });
  const healthCheck = { ...environmentDefaults.health_check, path: '/', interval_s: 1, healthy_after: 1 };

  /** What kubectl apply sends, without the time that kubectl itself takes. */
  async function bare(n: number): Promise<void> {
    const image = images[n % 2]!;
    const { digest } = await registry.resolve(image, null);
    const set: InstanceSet = {
      ...{ id: `bare${n}`, project: 'prj_bare', environment: 'production', revision: 1, image, digest, port: 8080 },
      ...{ variables: {}, resources: { memory_mb: 512, cpus: 1 }, healthCheck, drainS: 1 },
    };
    // biome-ignore lint/suspicious/noExplicitAny: an object of the API
    const object: any = replicaSetOf(set, { owner: 'bare', namespace, security: 'baseline' });
    object.spec.replicas = 1;
    for (const container of object.spec.template.spec.containers) delete container.envFrom;
    object.spec.template.spec.containers[0].env.push({ name: 'PORT', value: '8080' });
    const path = `/apis/apps/v1/namespaces/${namespace}/replicasets/${object.metadata.name}`;
    const contentType = 'application/apply-patch+yaml';
    await cluster.request({ method: 'PATCH', path, query: { fieldManager }, contentType, body: object });
    const isReady = async () => {
      const [pod] = await list<Pod>(`/api/v1/namespaces/${namespace}/pods`, `sluice.set=bare${n}`);
      return pod?.status?.containerStatuses?.[0]?.ready;
    };
    await until('the pod to be ready', isReady, 60_000, 10);
  }

  const isolated = await isolatedEnv();
  const service = startService({
    ...isolated.env,
    SLUICE_REGIONS: 'local=kubernetes:',
    SLUICE_KUBECONFIG: kubeconfig,
    SLUICE_KUBERNETES_NAMESPACE_PREFIX: namespacePrefix,
  });
  try {
    const shop = await Shop.open(await service.url, { replicas: 1, drain_s: 1, health_check: healthCheck });
    shop.pollMs = 100;
    await shop.released(images[0]!);
    const [alone, ours]: [number[], number[]] = [[], []];
    for (let n = 0; n < rounds; n++) {
      alone.push(await timed(() => bare(n)));
      const image = images[(n + 1) % 2]!;
      let id = '';
      ours.push(
        await timed(async () => {
          ({ id } = await shop.deploy(image, { strategy: 'blue_green' }));
          await until('visitors to see it', async () => (await shop.visit()).image === image, 60_000, 10);
        }),
      );
      await shop.reaches(id, 'succeeded');
    }
    const more = median(ours) - median(alone);
    report(
      'a deployment, more than a bare ReplicaSet',
      `${more.toFixed(0)} ms`,
      `≤ ${moreMs} ms`,
      more <= moreMs,
      `medians of ${rounds}: ${median(ours).toFixed(0)} ms until visitors see it, ${median(alone).toFixed(0)} ms until its pod is ready`,
    );
  } finally {
    service.killAll();
    await service.exited;
    await Promise.all([isolated.clean(), registry.close()]);
    await cleanUp();
  }
}

async function timed(work: () => Promise<void>): Promise<number> {
  const before = performance.now();
  await work();
  return performance.now() - before;
}

/** The API is a double, in a process of its own: no cluster of one node has so many pods. */
async function idle(): Promise<void> {
  const child = fork(new URL('lib/many-sets.ts', import.meta.url), [String(sets)]);
  const [server] = (await once(child, 'message')) as [string];
  const engine = createKubernetesEngine({
    access: { server, ca: null, serverName: null, client: null, token: null, namespace: null },
    installation: 'home',
    namespaces: { kind: 'per-project', prefix: 's-' },
    routers: [],
    registry: createRegistry(),
  });
  await until('all instances', async () => (await engine.list()).filter(({ ready }) => ready).length === sets, 60_000);
  const share = async (everyMs: number, work: () => Promise<unknown>): Promise<number> => {
    const [cpu, began] = [process.cpuUsage(), performance.now()];
    while (performance.now() - began < 20_000) {
      await work();
      await new Promise((resolve) => setTimeout(resolve, everyMs));
    }
    const { user, system } = process.cpuUsage(cpu);
    return (user + system) / 10 / (performance.now() - began);
  };
  const asked = await share(143, () => engine.list());
  const probed = await share(5000, () => engine.probe());
  report(
    `${sets} sets that nothing happens to`,
    `${(asked + probed).toFixed(2)} %`,
    '≤ 2 % of a core',
    asked + probed <= 2,
    `${asked.toFixed(2)} % to be asked 7 times a second what runs, ${probed.toFixed(2)} % to be probed`,
  );
  child.send('watches');
  const [open] = (await once(child, 'message')) as [number];
  note('watches', String(open), 'one of pods, one of ReplicaSets');
  await engine.close();
  child.kill();
}
