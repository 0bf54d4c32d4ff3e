// Sets on a real cluster: what they are made of, which instances go first, and what is left alone.
import assert from 'node:assert/strict';
import { after, describe, test } from 'node:test';
import type { KubeObject, Pod } from '../../src/engines/kubernetes/api/objects.ts';
import type { InstanceSet } from '../../src/engines/kubernetes/instance-set.ts';
import { openSets } from '../../src/engines/kubernetes/kubernetes.ts';
import { namespaceOf, setName, variablesName } from '../../src/engines/kubernetes/objects/names.ts';
import { readPod } from '../../src/engines/kubernetes/status/pod.ts';
import { createRegistry } from '../../src/engines/registry/registry.ts';
import { ids } from '../helpers/instances.ts';
import { until } from '../helpers/wait.ts';
import { access, cleanUp, cluster, imageOf, list, namespacePrefix, openEngine, remove } from './cluster.ts';

// biome-ignore lint/suspicious/noExplicitAny: a test looks into objects of every kind
type Any = any;

const web = await imageOf('web');
const registry = createRegistry();
const { digest } = await registry.resolve(web, null);
const owner = ids('sets');
const namespaces = { kind: 'per-project' as const, prefix: namespacePrefix };
const routers = [{ namespace: 'sluice', labels: { app: 'router' } }];
const { client, observed, sets } = openSets({ access, installation: owner, namespaces, routers, registry });
after(async () => {
  for (const id of (await observed.sets()).keys()) await sets.drop(id, 0, 30_000);
  observed.stop();
  await Promise.all([client.close(), registry.close()]);
  await cleanUp();
});

const project = ids('prj');
const namespace = namespaceOf(namespaces, project);
const setOf = (more: Partial<InstanceSet> = {}): InstanceSet => ({
  id: ids('set'),
  project,
  environment: 'production',
  revision: 1,
  image: web,
  digest,
  port: 8080,
  variables: { GREETING: 'a=b c' },
  resources: { memory_mb: 64, cpus: 0.5 },
  healthCheck: null,
  drainS: 1,
  instanceName: null,
  login: null,
  ...more,
});
const podsOf = async ({ id }: InstanceSet) =>
  ((await observed.sets()).get(id)?.pods ?? []).filter((pod) => !readPod(pod).isLeaving);
const ready = (set: InstanceSet, count: number) =>
  until(
    `${count} ready pods`,
    async () => {
      const pods = await podsOf(set);
      return pods.length === count && pods.every((pod) => readPod(pod).ready) && pods;
    },
    60_000,
  );

describe('sets', { timeout: 300_000 }, () => {
  test('a set is a ReplicaSet with an immutable Secret that it owns, limited and without rights', async () => {
    const set = setOf();
    await sets.keep(set, 1);
    const [pod] = await ready(set, 1);
    const { spec, metadata } = pod as Any;
    assert.equal(spec.automountServiceAccountToken, false);
    assert.equal(spec.terminationGracePeriodSeconds, 1);
    const [container] = spec.containers;
    assert.equal(container.image, `${web.replace(/:v1$/, '')}@${digest}`);
    assert.equal(container.resources.limits.memory, '64Mi');
    assert.equal(container.resources.limits.cpu, '500m');
    assert.equal(container.securityContext.allowPrivilegeEscalation, false);
    assert.deepEqual(
      ['installation', 'set', 'project', 'environment', 'revision'].map((name) => metadata.labels[`sluice.${name}`]),
      [owner, set.id, project, 'production', '1'],
    );
    const at = `/api/v1/namespaces/${namespace}/secrets/${variablesName(owner, set.id)}`;
    const secret: Any = await cluster.request({ path: at });
    assert.equal(secret.immutable, true);
    assert.equal(Buffer.from(secret.data.GREETING, 'base64').toString(), 'a=b c');
    assert.equal(secret.metadata.ownerReferences[0].name, setName(owner, set.id));
    assert.equal(
      secret.metadata.managedFields.every(({ manager }: Any) => manager === 'sluice'),
      true,
    );
    await sets.drop(set.id, 1, 30_000);
    await until(
      'the Secret to go',
      async () => (await list(at.replace(/\/[^/]+$/, ''), `sluice.set=${set.id}`)).length === 0,
      30_000,
    );
  });

  test('those that retire go, whatever else would', async () => {
    const set = setOf();
    await sets.keep(set, 3);
    const pods = await ready(set, 3);
    const [first, second] = pods.map(({ metadata }) => metadata.name).toSorted();
    await sets.keep(set, 1, [first!, second!]);
    const left = await ready(set, 1);
    assert.equal([first, second].includes(left[0]!.metadata.name), false);
    await sets.keep(set, 1, []);
    assert.equal((await podsOf(set)).length, 1, 'keeping it again changes nothing');
    await sets.drop(set.id, 0, 30_000);
    assert.deepEqual(await podsOf(set), []);
  });

  test('an image with a numeric user runs restricted, any other as baseline', async () => {
    const image = await imageOf('deaf', { user: '1000', image: 'sluice-test-user' });
    const own = await registry.resolve(image, null);
    const set = setOf({ image, digest: own.digest });
    const plain = setOf();
    for (const each of [set, plain]) await sets.keep(each, 1);
    const isRunning = async (each: InstanceSet) => (await podsOf(each)).find((pod) => readPod(pod).state === 'running');
    const restricted = await until('the pod with a user', () => isRunning(set), 60_000);
    const baseline = await until('the other pod', () => isRunning(plain), 60_000);
    const contextOf = (pod: Pod) => (pod as Any).spec.containers[0].securityContext;
    assert.deepEqual([contextOf(restricted).runAsNonRoot, contextOf(restricted).capabilities.drop], [true, ['ALL']]);
    assert.equal(contextOf(baseline).runAsNonRoot, undefined);
    assert.equal(contextOf(baseline).seccompProfile.type, 'RuntimeDefault');
    const found: Any = await cluster.request({ path: `/api/v1/namespaces/${namespace}` });
    assert.equal(found.metadata.labels['pod-security.kubernetes.io/enforce'], 'baseline');
    for (const { id } of [set, plain]) await sets.drop(id, 0, 30_000);
  });

  test('a policy admits routers and nobody else', async () => {
    const set = setOf();
    await sets.keep(set, 0);
    const [policy] = await list<Any>(`/apis/networking.k8s.io/v1/namespaces/${namespace}/networkpolicies`);
    assert.deepEqual(policy.spec.ingress, [
      {
        from: [
          {
            namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'sluice' } },
            podSelector: { matchLabels: { app: 'router' } },
          },
        ],
      },
    ]);
    assert.deepEqual(policy.spec.podSelector, { matchLabels: { 'sluice.installation': owner } });
    await sets.drop(set.id, 0, 30_000);
  });

  test('the login of a registry is written anew when it changes', async () => {
    const login = { username: 'ann', password: 'one', server: 'registry.example' };
    const set = setOf({ login });
    await sets.keep(set, 0);
    const path = `/api/v1/namespaces/${namespace}/secrets/${setName(owner, set.id)}-pull`;
    const passwordOf = async () => {
      const { data }: Any = await cluster.request({ path });
      return JSON.parse(Buffer.from(data['.dockerconfigjson'], 'base64').toString()).auths['registry.example'].password;
    };
    assert.equal(await passwordOf(), 'one');
    await sets.keep({ ...set, login: { ...login, password: 'two' } }, 0);
    assert.equal(await passwordOf(), 'two');
    await sets.drop(set.id, 0, 30_000);
  });

  test('what others made is never touched', async () => {
    const set = setOf();
    await sets.keep(setOf(), 0);
    const labels = { app: 'theirs' };
    const foreign = {
      apiVersion: 'apps/v1',
      kind: 'ReplicaSet',
      metadata: { name: setName(owner, set.id), namespace, labels },
      spec: {
        replicas: 0,
        selector: { matchLabels: labels },
        template: { metadata: { labels }, spec: { containers: [{ name: 'x', image: 'x' }] } },
      },
    };
    const path = `/apis/apps/v1/namespaces/${namespace}/replicasets`;
    const before = await cluster.request<KubeObject>({ method: 'POST', path, body: foreign });
    await assert.rejects(sets.keep(set, 1), /Others made/);
    await sets.drop(set.id, 0, 5_000);
    const { metadata }: Any = await cluster.request({ path: `${path}/${before.metadata.name}` });
    assert.deepEqual([metadata.generation, metadata.labels], [1, labels]);
    assert.equal(
      metadata.managedFields.filter(({ manager, subresource }: Any) => manager === 'sluice' && !subresource).length,
      1,
      'the test itself',
    );
    await remove(`${path}/${before.metadata.name}`);
    const other = ids('prj');
    const name = namespaceOf(namespaces, other);
    await cluster.request({ method: 'POST', path: '/api/v1/namespaces', body: { metadata: { name } } });
    await assert.rejects(sets.keep(setOf({ project: other }), 1), /belongs to others/);
  });
});

describe('a pod that goes', { timeout: 300_000 }, () => {
  const gone: Record<string, (path: string) => Promise<unknown>> = {
    'that somebody deletes': (path) => remove(path, { gracePeriodSeconds: 1 }),
    'of a node that is drained': (path) =>
      cluster.request({
        method: 'POST',
        path: `${path}/eviction`,
        body: { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name: path.split('/').at(-1) } },
      }),
  };
  for (const [what, go] of Object.entries(gone)) {
    test(`one ${what} is replaced by the cluster, and the instance stays`, async () => {
      const installation = ids('engine');
      const engine = openEngine(installation);
      after(() => engine.close());
      const spec = { id: ids('ins'), project, environment: 'production', revision: 1, image: web, digest, port: 8080 };
      const resources = { memory_mb: 64, cpus: 1 };
      await engine.start({ ...spec, hostPort: null, variables: {}, resources, drainS: 1 });
      const isReady = async () => (await engine.list()).find(({ ready: isReady }) => isReady);
      const before = await until('it to be ready', isReady, 60_000);
      const [pod] = await list<Pod>('/api/v1/pods', `sluice.installation=${installation}`);
      await go(`/api/v1/namespaces/${namespace}/pods/${pod!.metadata.name}`);
      const now = await until(
        'another pod to be ready',
        async () => {
          const [found] = await engine.list();
          return found?.ready === true && found.address!.host !== before.address!.host && found;
        },
        60_000,
      );
      assert.deepEqual([now.id, now.failure], [spec.id, undefined]);
      await engine.stop(spec.id, 0);
      assert.deepEqual(await engine.list(), []);
    });
  }
});
