// The rights that the manifests and docs/kubernetes.md name are enough: the engine works with an account that has no others.
import assert from 'node:assert/strict';
import { after, describe, test } from 'node:test';
import type { ClusterAccess } from '../../src/engines/kubernetes/cluster-access.ts';
import { parseRouters } from '../../src/engines/kubernetes/kubernetes-settings.ts';
import type { Namespaces } from '../../src/engines/kubernetes/object-names.ts';
import { ids, specOf, start } from '../helpers/instances.ts';
import { engineCalls } from '../helpers/kubernetes-calls.ts';
import { until } from '../helpers/wait.ts';
import { access, cleanUp, cluster, imageOf, namespacePrefix, openEngine, remove } from './cluster.ts';

const workload = { image: await imageOf('chatty'), variables: {} };
const name = `${namespacePrefix}rights`;
const rbac = '/apis/rbac.authorization.k8s.io/v1';
after(async () => {
  await remove(`${rbac}/clusterrolebindings/${name}`);
  await remove(`${rbac}/clusterroles/${name}`);
  await cleanUp();
});

const rules = Object.entries(engineCalls).map(([resource, verbs]) => {
  const [, group = '', name = ''] = /^(?:(apps|[\w.]+\.k8s\.io)\/)?(.+)$/.exec(resource)!;
  return { apiGroups: [group], resources: [name], verbs };
});

const create = (path: string, body: object) => cluster.request({ method: 'POST', path, body });

/** A service account with these rights, in the whole cluster or in one namespace. */
async function accountWith(scope: 'cluster' | 'namespace', account: string): Promise<ClusterAccess> {
  const namespaces = '/api/v1/namespaces';
  if (scope === 'cluster') await create(namespaces, { metadata: { name } });
  await create(`${namespaces}/${name}/serviceaccounts`, { metadata: { name: account } });
  const kind = scope === 'cluster' ? 'ClusterRole' : 'Role';
  const at = scope === 'cluster' ? rbac : `${rbac}/namespaces/${name}`;
  const plural = `${kind.toLowerCase()}s`;
  const bindings = `${kind.toLowerCase()}bindings`;
  const granted = rules.filter(({ resources }) => scope === 'cluster' || !resources.includes('namespaces'));
  await create(`${at}/${plural}`, { metadata: { name }, rules: granted });
  await create(`${at}/${bindings}`, {
    metadata: { name },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind, name },
    subjects: [{ kind: 'ServiceAccount', name: account, namespace: name }],
  });
  const path = `${namespaces}/${name}/serviceaccounts/${account}/token`;
  const { status } = await cluster.request<{ status: { token: string } }>({ method: 'POST', path, body: { spec: {} } });
  return { ...access, client: null, token: async () => status.token };
}

async function worksWith(own: ClusterAccess, namespaces: Namespaces): Promise<void> {
  const engine = openEngine(ids('rights'), { access: own, namespaces, routers: parseRouters('10.0.0.0/8') });
  try {
    await until(
      'the rights to count',
      () =>
        engine.probe().then(
          () => true,
          () => false,
        ),
      20_000,
    );
    const login = { username: 'a', password: 'b', server: 'registry.example' };
    const spec = await specOf(engine, workload, { login, drainS: 1 });
    await start(engine, spec);
    await until('it to be ready', async () => (await engine.list())[0]?.ready, 60_000);
    assert.equal((await engine.logs(spec.id, { tail: 3 })).length, 3);
    await engine.stop(spec.id, 1);
    assert.deepEqual(await engine.list(), []);
  } finally {
    await engine.close();
  }
}

describe('rights', { timeout: 200_000 }, () => {
  test('a namespace for each project', async () => {
    await worksWith(await accountWith('cluster', 'everywhere'), { kind: 'per-project', prefix: namespacePrefix });
  });

  test('one namespace, and rights in it alone', async () => {
    const own = await accountWith('namespace', 'inside');
    await worksWith(own, { kind: 'one', name });
    const elsewhere = openEngine(ids('rights'), { access: own });
    await assert.rejects(elsewhere.probe(), /cannot list resource "replicasets"/);
    await elsewhere.close();
  });
});
