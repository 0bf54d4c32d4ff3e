// Sets on a real cluster: what they are made of, which instances go first, and what is left alone.
import assert from 'node:assert/strict';
import { after, describe, test } from 'node:test';
import type { InstanceSet } from '../../src/engines/engine.ts';
import type { KubeObject, Pod } from '../../src/engines/kubernetes/kube-objects.ts';
import { namespaceOf, setName, variablesName } from '../../src/engines/kubernetes/object-names.ts';
import { readPod } from '../../src/engines/kubernetes/pod-status.ts';
import { createRegistry } from '../../src/engines/registry/registry.ts';
import { ids, start } from '../helpers/instances.ts';
import { until } from '../helpers/wait.ts';
import { cleanUp, cluster, imageOf, list, namespacePrefix, openEngine, remove } from './cluster.ts';

// biome-ignore lint/suspicious/noExplicitAny: a test looks into objects of every kind
type Any = any;

const web = await imageOf('web');
const registry = createRegistry();
const { digest } = await registry.resolve(web, null);
const owner = ids('sets');
const namespaces = { kind: 'per-project' as const, prefix: namespacePrefix };
const routers = [{ namespace: 'sluice', labels: { app: 'router' } }];
const engine = openEngine(owner, { routers });
after(async () => {
  for (const id of await engine.sets!()) await engine.drop(id);
  await Promise.all([engine.close(), registry.close()]);
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
  drainS: 1,
  ...more,
});
const podsOf = async ({ id }: InstanceSet) =>
  (await list<Pod>(`/api/v1/namespaces/${namespace}/pods`, `sluice.set=${id}`)).filter(
    (pod) => !readPod(pod).isLeaving,
  );
const membersOf = (count: number) => Array.from({ length: count }, () => ({ id: ids('ins'), hostPort: null }));
const keep = (set: InstanceSet, members = membersOf(1)) => Promise.all(engine.keep(set, members));
const own = async ({ revision }: InstanceSet) =>
  (await engine.list()).filter((instance) => instance.revision === revision);
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
    await keep(set);
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
    const at = `/api/v1/namespaces/${namespace}/secrets/${variablesName(owner, set)}`;
    const secret: Any = await cluster.request({ path: at });
    assert.equal(secret.immutable, true);
    assert.equal(Buffer.from(secret.data.GREETING, 'base64').toString(), 'a=b c');
    assert.equal(secret.metadata.ownerReferences[0].name, setName(owner, set));
    assert.equal(
      secret.metadata.managedFields.every(({ manager }: Any) => manager === 'sluice'),
      true,
    );
    await engine.drop(set.id);
    await until(
      'the Secret to go',
      async () => (await list(at.replace(/\/[^/]+$/, ''), `sluice.set=${set.id}`)).length === 0,
      30_000,
    );
  });

  test('each pod is one of its instances; those that are stopped go, whatever else would, and the others stay', async () => {
    const set = setOf({ revision: 2 });
    const members = membersOf(4);
    await keep(set, members.slice(0, 2));
    await keep(set, members);
    const pods = await ready(set, 4);
    assert.equal((await list('/apis/apps/v1/replicasets', `sluice.set=${set.id}`)).length, 1);
    const addressOf = async (id: string) => (await own(set)).find((one) => one.id === id)?.address?.host;
    const before = new Map(await Promise.all(members.map(async ({ id }) => [id, await addressOf(id)] as const)));
    assert.deepEqual(
      new Set(before.values()),
      new Set(pods.map((pod) => pod.status!.podIP)),
      'each has a pod of its own',
    );
    await until(
      'the pods to say so',
      async () => (await podsOf(set)).every((pod) => pod.metadata.annotations?.['sluice.instance'] !== undefined),
      10_000,
    );
    const [first, second, ...others] = members;
    await Promise.all([engine.stop(second!.id, 1), engine.stop(first!.id, 1)]);
    await ready(set, 2);
    assert.deepEqual((await own(set)).map(({ id }) => id).toSorted(), others.map(({ id }) => id).toSorted());
    for (const { id } of others) assert.equal(await addressOf(id), before.get(id), 'the others are where they were');
    await keep(set, others);
    assert.equal((await podsOf(set)).length, 2, 'keeping it again changes nothing');
    await engine.stop(first!.id, 0);
    const another = openEngine(owner);
    after(() => another.close());
    assert.deepEqual((await another.list()).map(({ id }) => id).toSorted(), others.map(({ id }) => id).toSorted());
    await engine.drop(set.id);
    assert.deepEqual([await podsOf(set), await own(set)], [[], []]);
  });

  test('an image with a numeric user runs restricted, any other as baseline', async () => {
    const image = await imageOf('deaf', { user: '1000', image: 'sluice-test-user' });
    const own = await registry.resolve(image, null);
    const set = setOf({ image, digest: own.digest });
    const plain = setOf();
    for (const each of [set, plain]) await keep(each);
    const isRunning = async (each: InstanceSet) => (await podsOf(each)).find((pod) => readPod(pod).state === 'running');
    const restricted = await until('the pod with a user', () => isRunning(set), 60_000);
    const baseline = await until('the other pod', () => isRunning(plain), 60_000);
    const contextOf = (pod: Pod) => (pod as Any).spec.containers[0].securityContext;
    assert.deepEqual([contextOf(restricted).runAsNonRoot, contextOf(restricted).capabilities.drop], [true, ['ALL']]);
    assert.equal(contextOf(baseline).runAsNonRoot, undefined);
    assert.equal(contextOf(baseline).seccompProfile.type, 'RuntimeDefault');
    const found: Any = await cluster.request({ path: `/api/v1/namespaces/${namespace}` });
    assert.equal(found.metadata.labels['pod-security.kubernetes.io/enforce'], 'baseline');
    for (const { id } of [set, plain]) await engine.drop(id);
  });

  test('a policy admits routers and nobody else', async () => {
    const set = setOf();
    await keep(set);
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
    await engine.drop(set.id);
  });

  test('the login of a registry is written anew when it changes', async () => {
    const login = { username: 'ann', password: 'one', server: 'registry.example' };
    const set = setOf({ login });
    await keep(set);
    const path = `/api/v1/namespaces/${namespace}/secrets/${setName(owner, set)}-pull`;
    const passwordOf = async () => {
      const { data }: Any = await cluster.request({ path });
      return JSON.parse(Buffer.from(data['.dockerconfigjson'], 'base64').toString()).auths['registry.example'].password;
    };
    assert.equal(await passwordOf(), 'one');
    await keep({ ...set, login: { ...login, password: 'two' } });
    assert.equal(await passwordOf(), 'two');
    await engine.drop(set.id);
  });

  test('what others made is never touched', async () => {
    const set = setOf();
    await keep(setOf());
    const labels = { app: 'theirs' };
    const foreign = {
      apiVersion: 'apps/v1',
      kind: 'ReplicaSet',
      metadata: { name: setName(owner, set), namespace, labels },
      spec: {
        replicas: 0,
        selector: { matchLabels: labels },
        template: { metadata: { labels }, spec: { containers: [{ name: 'x', image: 'x' }] } },
      },
    };
    const path = `/apis/apps/v1/namespaces/${namespace}/replicasets`;
    const before = await cluster.request<KubeObject>({ method: 'POST', path, body: foreign });
    await assert.rejects(keep(set), /Others made/);
    await engine.drop(set.id);
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
    await assert.rejects(keep(setOf({ project: other })), /belongs to others/);
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
      await start(engine, { ...spec, hostPort: null, variables: {}, resources, drainS: 1 });
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
