// Every reason for which an instance does not run, brought about on a real cluster: each has its code, and a sentence that
// says what to do.
import assert from 'node:assert/strict';
import { after, describe, test } from 'node:test';
import { EngineError, type EngineInstance, type InstanceSpec } from '../../src/engines/engine.ts';
import type { Pod } from '../../src/engines/kubernetes/kube-objects.ts';
import { namespaceOf, setName } from '../../src/engines/kubernetes/object-names.ts';
import { createRegistry } from '../../src/engines/registry/registry.ts';
import { ids, start } from '../helpers/instances.ts';
import { until } from '../helpers/wait.ts';
import { cleanUp, cluster, imageOf, list, namespacePrefix, openEngine, remove } from './cluster.ts';

const registry = createRegistry();
const images = new Map<string, { image: string; digest: string }>();
for (const kind of ['web', 'exits', 'hungry', 'broken', 'empty'] as const) {
  const image = await imageOf(kind);
  images.set(kind, { image, ...(await registry.resolve(image, null)) });
}
const namespaces = { kind: 'per-project' as const, prefix: namespacePrefix };
const owner = ids('failures');
const engine = openEngine(owner);
after(async () => {
  for (const { id } of await engine.list()) await engine.stop(id, 0);
  await engine.close();
  await registry.close();
  await cleanUp();
});

const specOf = (kind: string, more: Partial<InstanceSpec> = {}): InstanceSpec => ({
  id: ids('ins'),
  project: ids('prj'),
  environment: 'production',
  revision: 1,
  ...images.get(kind)!,
  port: 8080,
  hostPort: null,
  variables: {},
  resources: { memory_mb: 64, cpus: 1 },
  drainS: 1,
  ...more,
});
/** As start() calls it. */
const setIdOf = ({ id }: InstanceSpec) => `set-of-${id}`;
const podOf = async (spec: InstanceSpec) =>
  (
    await list<Pod>(`/api/v1/namespaces/${namespaceOf(namespaces, spec.project)}/pods`, `sluice.set=${setIdOf(spec)}`)
  )[0];
const found = async (id: string) => (await engine.list()).find((instance) => instance.id === id);
const failing = (id: string, code: string): Promise<EngineInstance> =>
  until(
    `${id} to fail with ${code}`,
    async () => {
      const instance = await found(id);
      return instance?.failure?.code === code && instance;
    },
    60_000,
  );

describe('failures', { timeout: 400_000 }, () => {
  test('a program that keeps ending: crashed, with its exit code and what it printed', async () => {
    const spec = specOf('exits');
    await start(engine, spec);
    const instance = await failing(spec.id, 'crashed');
    assert.deepEqual([instance.state, instance.exitCode], ['exited', 3]);
    assert.match(instance.failure!.message, /exit code 3/);
    assert.deepEqual(
      (await engine.logs(spec.id, { tail: 5 })).map(({ text }) => text),
      ['no reason to stay'],
    );
    // The kubelet starts it again; what is said stays the same.
    await until('a restart', async () => (await podOf(spec))?.status?.containerStatuses?.[0]?.restartCount, 60_000);
    assert.equal((await found(spec.id))?.state, 'exited');
    assert.deepEqual(
      (await engine.logs(spec.id, { tail: 5 })).map(({ text }) => text),
      ['no reason to stay'],
    );
  });

  test('too much memory: out_of_memory', async () => {
    const spec = specOf('hungry', { resources: { memory_mb: 16, cpus: 1 } });
    await start(engine, spec).catch(() => {});
    const instance = await failing(spec.id, 'out_of_memory');
    assert.equal(instance.state, 'exited');
    assert.match(instance.failure!.message, /16Mi.*resources\.memory_mb/);
  });

  const cannotStart: [kind: string, code: string, words: RegExp][] = [
    ['broken', 'start_failed', /cannot be created.*Check the command, the user and the files/],
    ['empty', 'start_failed', /cannot be (started|created).*(no such file|not found)/i],
  ];
  for (const [kind, code, words] of cannotStart) {
    test(`an image that is ${kind}: ${code}`, async () => {
      const spec = specOf(kind);
      await start(engine, spec).catch((error) => assert.equal(error.failure?.code, code));
      assert.match((await failing(spec.id, code)).failure!.message, words);
    });
  }

  test('an image that is not there: image_not_found, even while the kubelet backs off', async () => {
    const spec = specOf('web', { digest: `sha256:${'0'.repeat(64)}` });
    await assert.rejects(start(engine, spec), (error) => {
      assert.ok(error instanceof EngineError && error.failure?.code === 'image_not_found', String(error));
      return true;
    });
    const isBackingOff = async () => {
      const pod = await podOf(spec);
      return pod?.status?.containerStatuses?.[0]?.state?.waiting?.reason === 'ImagePullBackOff';
    };
    await until('the kubelet to back off', isBackingOff, 90_000);
    assert.match((await failing(spec.id, 'image_not_found')).failure!.message, /found no .*Check its name and tag/);
  });

  test('a registry that nodes cannot reach: registry_unreachable', async () => {
    const spec = specOf('web', { image: '127.0.0.1:1/sluice-test-web:v1' });
    await assert.rejects(start(engine, spec), { message: /nodes reach its registry/ });
    await failing(spec.id, 'registry_unreachable');
  });

  test('variables that are not there: start_failed, and to deploy again', async () => {
    const spec = specOf('web');
    await start(engine, spec);
    const namespace = namespaceOf(namespaces, spec.project);
    // The kubelet keeps a Secret that never changes, even if somebody removes it.
    const variables = '/spec/template/spec/containers/0/envFrom/0/secretRef/name';
    await cluster.request({
      method: 'PATCH',
      path: `/apis/apps/v1/namespaces/${namespace}/replicasets/${setName(owner, { ...spec, id: setIdOf(spec) })}`,
      contentType: 'application/json-patch+json',
      body: [{ op: 'replace', path: variables, value: 'removed' }],
    });
    await remove(`/api/v1/namespaces/${namespace}/pods/${(await podOf(spec))!.metadata.name}`);
    assert.match((await failing(spec.id, 'start_failed')).failure!.message, /secret .* not found.*deploy again/);
  });

  test('no node with room: unschedulable', async () => {
    const spec = specOf('web', { resources: { memory_mb: 100_000_000, cpus: 1 } });
    const starting = assert.rejects(start(engine, spec), { message: /Insufficient memory/ });
    const instance = await failing(spec.id, 'unschedulable');
    assert.equal(instance.state, 'created', 'a node with room may come');
    assert.match(instance.failure!.message, /Insufficient memory.*Add nodes/);
    await starting;
  });

  test('a quota: quota_exceeded', async () => {
    const spec = specOf('web');
    const first = { ...spec, id: ids('ins') };
    await start(engine, first);
    const path = `/api/v1/namespaces/${namespaceOf(namespaces, spec.project)}/resourcequotas`;
    const quota = { metadata: { name: 'none' }, spec: { hard: { pods: '0' } } };
    await cluster.request({ method: 'POST', path, body: quota });
    await until(
      'the quota to count',
      async () => {
        const { status } = await cluster.request<{ status?: { hard?: object } }>({ path: `${path}/none` });
        return status?.hard;
      },
      30_000,
    );
    const starting = assert.rejects(start(engine, spec), { message: /exceeded quota/ });
    const instance = await failing(spec.id, 'quota_exceeded');
    assert.match(instance.failure!.message, /exceeded quota.*Raise its ResourceQuota/);
    assert.equal(instance.state, 'created');
    await starting;
  });
});
