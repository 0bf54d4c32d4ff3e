import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseRange } from '../../lib/address.ts';
import { InvalidSetting } from '../../lib/setting-parsers.ts';
import type { InstanceSet } from '../engine.ts';
import { parseRouters } from './kubernetes-settings.ts';
import { pullSecret, replicaSetOf, securityFor, variablesSecret } from './manifests.ts';
import { dnsLabel, namespaceOf, setIdentityOf, setName } from './object-names.ts';

// biome-ignore lint/suspicious/noExplicitAny: a test looks into objects of every kind
type Any = any;

const set: InstanceSet = {
  id: 'ins_01',
  project: 'prj_01',
  environment: 'production',
  revision: 7,
  image: 'registry.example/shop:v1',
  digest: `sha256:${'a'.repeat(64)}`,
  port: 9000,
  variables: { NAME: 'é', PORT: '1', DEPLOY_PROJECT: 'own' },
  resources: { memory_mb: 256, cpus: 0.25 },
  healthCheck: {
    path: '/health',
    interval_s: 5,
    timeout_s: 3,
    healthy_after: 2,
    unhealthy_after: 4,
    start_timeout_s: 90,
  },
  drainS: 25,
  login: null,
};

test('names are valid, and different for what is different', () => {
  const named = (id: string, environment = 'production', revision = 7) =>
    setName('home-local', { id, environment, revision });
  const ids = ['set_01', 'set-01', 'SET_01', 'set.01', `set_${'x'.repeat(59)}`, `set_${'x'.repeat(58)}y`];
  const names = [...ids.map((id) => named(id)), named('set_01', 'x'.repeat(63), 99_999), named('set_01', 'Pre_view')];
  assert.equal(new Set(names).size, names.length);
  for (const name of names) assert.match(name, /^[a-z0-9]([a-z0-9-]{0,55}[a-z0-9])?$/, name);
  assert.match(named('set_01'), /^production-r7-[0-9a-f]{8}$/);
  assert.notEqual(named('set_01'), setName('other-local', { id: 'set_01', environment: 'production', revision: 7 }));
  assert.equal(dnsLabel('shop', 20), 'shop');
  const perProject = { kind: 'per-project' as const, prefix: 'sluice-' };
  assert.match(namespaceOf(perProject, 'prj_01'), /^sluice-prj-01-[0-9a-f]{8}$/);
  assert.equal(namespaceOf({ kind: 'one', name: 'team' }, 'prj_01'), 'team');
});

test('a set becomes a ReplicaSet and is read back from its labels', () => {
  const made: Any = replicaSetOf(set, { owner: 'home-local', namespace: 'ns', security: 'restricted' });
  assert.deepEqual(setIdentityOf(made.metadata.labels), {
    id: 'ins_01',
    project: 'prj_01',
    environment: 'production',
    revision: 7,
  });
  const { spec } = made.spec.template;
  assert.equal(spec.terminationGracePeriodSeconds, 25);
  const [container] = spec.containers;
  assert.equal(container.image, `registry.example/shop@${set.digest}`);
  assert.deepEqual(container.resources.limits, { memory: '256Mi', cpu: '250m', 'ephemeral-storage': '10G' });
  assert.deepEqual(container.readinessProbe, {
    httpGet: { path: '/health', port: 9000, scheme: 'HTTP' },
    periodSeconds: 5,
    timeoutSeconds: 3,
    successThreshold: 2,
    failureThreshold: 4,
  });
  assert.equal(container.env[0].valueFrom.fieldRef.fieldPath, 'metadata.name');
  const { healthCheck: _, ...unchecked } = set;
  const named: Any = replicaSetOf(
    { ...unchecked, variables: { DEPLOY_INSTANCE: 'own' } },
    { owner: 'home-local', namespace: 'ns', security: 'baseline' },
  );
  assert.equal(named.spec.template.spec.containers[0].env, undefined);
  assert.deepEqual(named.spec.template.spec.containers[0].readinessProbe.tcpSocket, { port: 9000 });
});

test('variables: those of the environment before ours, but the port is what it is', () => {
  const secret: Any = variablesSecret('home-local', set, { name: 'rs', uid: 'u', namespace: 'ns' });
  const data = Object.fromEntries(
    Object.entries(secret.data).map(([name, value]) => [name, Buffer.from(value as string, 'base64').toString()]),
  );
  assert.deepEqual(data, {
    DEPLOY_PROJECT: 'own',
    DEPLOY_ENVIRONMENT: 'production',
    DEPLOY_REVISION: 'r7',
    NAME: 'é',
    PORT: '9000',
  });
  assert.equal(secret.immutable, true);
});

test('a login is written as kubelets read it', () => {
  const owning = { name: 'rs', uid: 'u', namespace: 'ns' };
  const auths = (login: InstanceSet['login'] & object) => {
    const { data }: Any = pullSecret('home-local', set, login, owning);
    return JSON.parse(Buffer.from(data['.dockerconfigjson'], 'base64').toString()).auths;
  };
  const hub = auths({ username: 'ann', password: 'p', server: 'docker.io' });
  assert.deepEqual(hub, { 'https://index.docker.io/v1/': { username: 'ann', password: 'p', auth: 'YW5uOnA=' } });
  const token = auths({ username: '', password: '', identitytoken: 't', server: 'r.example' });
  assert.equal(token['r.example'].identitytoken, 't');
});

test('only a user that is a number other than 0 is known not to be root', () => {
  for (const user of ['1000', '65534:65534', '1']) assert.equal(securityFor(user), 'restricted', user);
  for (const user of ['', '0', '0:0', 'root', 'app', 'app:1000']) assert.equal(securityFor(user), 'baseline', user);
});

test('routers are addresses, a namespace, or pods with a label', () => {
  assert.deepEqual(parseRouters('10.0.0.0/8, sluice:, edge:app.kubernetes.io/name=router'), [
    { range: parseRange('10.0.0.0/8') },
    { namespace: 'sluice', labels: {} },
    { namespace: 'edge', labels: { 'app.kubernetes.io/name': 'router' } },
  ]);
  assert.deepEqual(parseRouters(''), []);
  for (const value of ['10.0.0.0', 'sluice', 'A:b=c', 'a:b'])
    assert.throws(() => parseRouters(value), InvalidSetting, value);
});
