// The order in which a set is made and removed, against an API that refuses, conflicts and remembers what it was asked.
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { type EngineChange, EngineError, type InstanceSpec } from '../../../src/engines/engine.ts';
import { createKubernetesEngine } from '../../../src/engines/kubernetes/kubernetes.ts';
import { namespaceOf, setName } from '../../../src/engines/kubernetes/object-names.ts';
import type { Registry } from '../../../src/engines/registry/registry.ts';
import { start } from '../../helpers/instances.ts';
import { type Json, type KubeApi, startKubeApi } from '../../helpers/kube-api.ts';
import { until } from '../../helpers/wait.ts';

const owner = 'home-local';
const namespaces = { kind: 'per-project' as const, prefix: 'sluice-' };
const digest = `sha256:${'a'.repeat(64)}`;
const registry: Registry = {
  resolve: async () => ({ digest }),
  config: async () => ({ user: '1000', ports: [] }),
  close: async () => {},
};
const spec: InstanceSpec = {
  id: 'ins_01',
  project: 'prj_01',
  environment: 'production',
  revision: 7,
  image: 'registry.example/shop:v1',
  digest,
  port: 8080,
  hostPort: null,
  variables: { NAME: 'value' },
  resources: { memory_mb: 512, cpus: 1 },
};
/** As start() calls it. */
const setId = `set-of-${spec.id}`;
const namespace = namespaceOf(namespaces, spec.project);
const replicaSetPath = `/apis/apps/v1/namespaces/${namespace}/replicasets/${setName(owner, { ...spec, id: setId })}`;
const podPath = `/api/v1/namespaces/${namespace}/pods/pod-1`;

async function open(prepare: (api: KubeApi) => void = () => {}) {
  const api = await startKubeApi();
  prepare(api);
  const times = { watchS: 300, silenceMs: 60_000, firstWaitMs: 10, longestWaitMs: 100 };
  const engine = createKubernetesEngine({
    access: api.access,
    installation: owner,
    namespaces,
    routers: [],
    registry,
    times,
  });
  after(async () => {
    await engine.close();
    await api.close();
  });
  await until('the watches', () => api.watches().open === 2);
  return { api, engine };
}

/** What the controller and the kubelet do. */
function run(api: KubeApi, status: Json): void {
  const { metadata, spec: own } = api.objects.get(replicaSetPath);
  const labels = own.template.metadata.labels;
  const owned = { ownerReferences: [{ uid: metadata.uid }] };
  api.put(podPath, { metadata: { name: 'pod-1', namespace, labels, ...owned }, spec: own.template.spec, status });
}
const running = {
  phase: 'Running',
  podIP: '10.0.0.9',
  containerStatuses: [{ name: 'app', ready: true, restartCount: 0, state: { running: {} } }],
};
const changes = (api: KubeApi) =>
  api.asked
    .filter((line) => !line.startsWith('GET'))
    .map((line) => line.replace(/\?.*/, '').replace(/^(\w+) .*\/([\w-]+\/[^/]+)$/, '$1 $2'));

const runs = async (api: KubeApi, status: Json = running) => {
  await until('the set to be scaled', () => api.objects.get(replicaSetPath)?.spec.replicas === 1);
  run(api, status);
};

test('the ReplicaSet comes first and empty, then what it owns, then its pods', async () => {
  const { api, engine } = await open();
  await Promise.all([start(engine, spec), runs(api)]);
  const name = setName(owner, { ...spec, id: setId });
  assert.deepEqual(changes(api), [
    `PATCH namespaces/${namespace}`,
    `PATCH replicasets/${name}`,
    `PATCH secrets/${name}-env`,
    `PATCH poddisruptionbudgets/${name}`,
    `PATCH replicasets/${name}`,
    'PATCH pods/pod-1',
  ]);
  assert.ok(api.asked.filter((line) => line.startsWith('PATCH')).every((line) => line.includes('fieldManager=sluice')));
  const secret = api.objects.get(`/api/v1/namespaces/${namespace}/secrets/${name}-env`);
  assert.equal(secret.metadata.ownerReferences[0].uid, api.objects.get(replicaSetPath).metadata.uid);
  const [instance] = await engine.list();
  assert.partialDeepStrictEqual(instance!, { id: 'ins_01', state: 'running', ready: true, revision: 7 });
  assert.deepEqual(instance!.address, { host: '10.0.0.9', port: 8080 });
  assert.equal(api.objects.get(podPath).metadata.annotations['sluice.instance'], 'ins_01');
});

test('a drain takes one instance of a set after another, and is never refused for the only one', async () => {
  const { api, engine } = await open();
  await Promise.all([start(engine, spec), runs(api)]);
  const replicaSet = api.objects.get(replicaSetPath);
  const { name, uid, labels } = replicaSet.metadata;
  const budget = api.objects.get(`/apis/policy/v1/namespaces/${namespace}/poddisruptionbudgets/${name}`);
  assert.deepEqual(budget.spec, {
    maxUnavailable: 1,
    unhealthyPodEvictionPolicy: 'AlwaysAllow',
    selector: replicaSet.spec.selector,
  });
  assert.deepEqual(
    [budget.metadata.ownerReferences[0].uid, budget.metadata.labels],
    [uid, labels],
    'it goes with its set',
  );
});

test('an account that may make no budgets runs sets all the same', async () => {
  const { api, engine } = await open();
  api.answerNext(/PATCH .*\/poddisruptionbudgets\//, { status: 403, body: { message: 'forbidden' } });
  await Promise.all([start(engine, spec), runs(api)]);
  assert.equal((await engine.list())[0]?.state, 'running');
});

test('what a crash left half made is completed', async () => {
  const { api, engine } = await open();
  api.answerNext(/PATCH .*\/secrets\//, { status: 403, body: { message: 'crash' } });
  await assert.rejects(start(engine, spec), /crash/);
  assert.equal(api.objects.get(replicaSetPath).spec.replicas, 0);
  assert.deepEqual(
    [await engine.list(), await engine.sets!()],
    [[], [setId]],
    'it is known, so that it can be dropped',
  );
  await Promise.all([start(engine, spec), runs(api)]);
  assert.equal((await engine.list())[0]?.state, 'running');
});

test('where others have the name, or a field of it, nothing is changed', async () => {
  const foreign = {
    metadata: { name: setName(owner, { ...spec, id: setId }), namespace, labels: { app: 'theirs' } },
    spec: {},
  };
  const { api, engine } = await open((fresh) => fresh.put(replicaSetPath, foreign));
  await assert.rejects(
    start(engine, spec),
    (error) => error instanceof EngineError && /Others made/.test(error.message),
  );
  await engine.stop(spec.id, 0);
  assert.deepEqual(api.objects.get(replicaSetPath).metadata.labels, { app: 'theirs' });
  assert.deepEqual(await engine.list(), []);
  const details = { causes: [{ reason: 'FieldManagerConflict' }] };
  api.answerNext(/PATCH .*\/replicasets\//, { status: 409, body: { message: 'conflict with "helm"', details } });
  await assert.rejects(start(engine, { ...spec, id: 'ins_02' }), /left as it is: conflict with "helm"/);
});

test('two processes that make the same at the same moment make it once', async () => {
  const { api, engine } = await open();
  for (const kind of ['namespaces', 'replicasets', 'secrets']) {
    api.answerNext(new RegExp(`PATCH .*/${kind}/[^/]+\\?`), {
      status: 409,
      body: { reason: 'AlreadyExists', message: 'exists' },
    });
  }
  await Promise.all([start(engine, spec), start(engine, spec), runs(api)]);
  assert.equal((await engine.list()).length, 1);
});

test('a namespace of others is left alone; one that is being removed is waited for', async () => {
  const path = `/api/v1/namespaces/${namespace}`;
  const { api, engine } = await open((fresh) => fresh.put(path, { metadata: { name: namespace } }));
  await assert.rejects(start(engine, spec), { fault: 'start_failed', message: /belongs to others/ });
  const labels = { 'sluice.installation': owner };
  api.put(path, { metadata: { name: namespace, labels, deletionTimestamp: '2026-11-15T22:00:00Z' } });
  await assert.rejects(start(engine, spec), { fault: 'unavailable', message: /being removed/ });
  api.put(path, null);
  await Promise.all([start(engine, spec), runs(api)]);
});

test('a start ends with the reason where there is one, and stop waits until nothing is left', async () => {
  const { api, engine } = await open();
  const waiting = { reason: 'ErrImagePull', message: 'registry.example/shop: not found' };
  const failing = { phase: 'Pending', containerStatuses: [{ name: 'app', state: { waiting } }] };
  const [outcome] = await Promise.allSettled([start(engine, spec), runs(api, failing)]);
  assert.equal(outcome.status, 'rejected');
  const { failure } = (outcome as PromiseRejectedResult).reason as EngineError;
  assert.equal(failure?.code, 'image_not_found');
  await engine.stop(spec.id, 3);
  assert.deepEqual(await engine.list(), []);
  assert.deepEqual([api.objects.get(replicaSetPath).spec.replicas, api.objects.has(podPath)], [0, false]);
  await engine.stop(spec.id, 0);
  await engine.stop('ins_never', 0);
  await engine.drop(setId);
  assert.equal(api.objects.has(replicaSetPath), false);
  await engine.drop(setId);
});

test('reports what changed, and that anything may have once it was away', async () => {
  const { api, engine } = await open();
  const seen: EngineChange[] = [];
  const end = engine.watch!((change) => seen.push(change));
  await Promise.all([start(engine, spec), runs(api)]);
  assert.ok(seen.length > 0 && seen.every((change) => change !== null));
  assert.deepEqual(seen.at(-1), { project: 'prj_01', environment: 'production' });
  api.answerNext(/watch=true/, { status: 500 });
  api.cut();
  await until('word of it', () => seen.some((change) => change === null));
  end();
});

test('instances are added and taken away one by one, whoever else changes the set meanwhile', async () => {
  const { api, engine } = await open();
  const { id: _, hostPort, ...made } = spec;
  const set = { ...made, id: setId };
  const members = ['ins_a', 'ins_b', 'ins_c'].map((id) => ({ id, hostPort }));
  const kept = () => api.objects.get(replicaSetPath).metadata.annotations['sluice.instances'];
  const starting = Promise.allSettled(engine.keep(set, members));
  await until('the set to be scaled', () => api.objects.get(replicaSetPath)?.spec.replicas === 3);
  assert.equal(kept(), 'ins_a,ins_b,ins_c');
  await until('the engine to see them', async () => (await engine.list()).length === 3);
  api.answerNext(/PATCH .*\/replicasets\//, { status: 409, body: { reason: 'Conflict', message: 'changed' } });
  await Promise.all([engine.stop('ins_b', 0), engine.stop('ins_a', 0)]);
  assert.deepEqual([kept(), api.objects.get(replicaSetPath).spec.replicas], ['ins_c', 1]);
  assert.deepEqual(
    (await engine.list()).map(({ id }) => id),
    ['ins_c'],
  );
  await engine.drop(setId);
  await engine.close();
  await starting;
});

test('a pod that was made while nobody looked is given to its instance by the next process', async () => {
  const { api, engine } = await open();
  const starting = Promise.allSettled([start(engine, spec)]);
  await until('the set to be scaled', () => api.objects.get(replicaSetPath)?.spec.replicas === 1);
  await engine.close();
  await starting;
  run(api, running);
  const next = createKubernetesEngine({ access: api.access, installation: owner, namespaces, routers: [], registry });
  after(() => next.close());
  const isRunning = async () => (await next.list())[0]?.state === 'running';
  await until('it to run', isRunning);
});
