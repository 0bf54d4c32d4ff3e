// The manifests of deploy/ without a cluster and without Compose: what they promise each other, the code and the cluster.
import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { test } from 'node:test';
import { parse, parseAllDocuments } from 'yaml';
import { readConfig } from '../../src/config.ts';
import { settings } from '../../src/settings.ts';
import { probePaths } from '../../src/traffic/proxy/probe.ts';
import { engineCalls } from '../helpers/kubernetes-calls.ts';

const root = 'deploy/kubernetes';
const read = (path: string) => readFileSync(path, 'utf8');
// biome-ignore lint/suspicious/noExplicitAny: objects of many shapes, each checked below
type Manifest = any;

const kustomizations = globSync(`${root}/*/kustomization.yaml`).map((path) => ({ path, content: parse(read(path)) }));
const objectsOf = (folder: string): Manifest[] =>
  globSync(`${root}/${folder}/*.yaml`, { exclude: (path) => basename(String(path)) === 'kustomization.yaml' }).flatMap(
    (path) => parseAllDocuments(read(path)).map((document) => document.toJS({ maxAliasCount: 0 })),
  );
const base = objectsOf('base');
const find = (kind: string, name: string): Manifest => {
  const found = base.filter((one) => one.kind === kind && one.metadata.name === name);
  assert.equal(found.length, 1, `${kind} ${name}`);
  return found[0];
};
const literals = (folder: string): Record<string, string> => {
  const { content } = kustomizations.find(({ path }) => dirname(path) === join(root, folder))!;
  const [{ literals }] = content.configMapGenerator;
  return Object.fromEntries(literals.map((text: string) => text.split(/=(.*)/s)));
};

interface Workload {
  name: string;
  spec: Manifest;
  container: Manifest;
  env: Record<string, string>;
}

const secrets: Record<string, string> = {
  'database-url': 'postgres://sluice@db.example/sluice',
  'secret-key': Buffer.alloc(32, 7).toString('base64'),
  'admin-token': 'manifest-admin-token-0123456789',
};
const workload = (name: string): Workload => {
  const { spec } = find('Deployment', name);
  const [container] = spec.template.spec.containers;
  const own = container.env.map(({ name, value, valueFrom }: Manifest) => [
    name,
    value ?? secrets[valueFrom.secretKeyRef.key],
  ]);
  return { name, spec, container, env: { ...literals('base'), ...Object.fromEntries(own) } };
};
const router = workload('sluice-router');
const control = workload('sluice-control');
const workloads = [router, control];
const configOf = ({ env }: Workload) => readConfig(env, false);

test('every kustomization names files that exist, and every file is named', () => {
  for (const { path, content } of kustomizations) {
    const named = content.resources.map((name: string) => join(dirname(path), name));
    for (const one of named) assert.ok(globSync(one).length === 1, `${path}: ${one}`);
    const here = globSync(`${dirname(path)}/*.yaml`).filter((one) => one !== path);
    for (const one of here) assert.ok(named.includes(one), `${one} is in no kustomization`);
  }
});

test('every variable is a setting, and the settings are valid', () => {
  const merged = { ...literals('base'), ...literals('example') };
  for (const { env, name } of workloads) {
    for (const setting of Object.keys({ ...env, ...merged })) assert.ok(setting in settings, `${name}: ${setting}`);
    readConfig({ ...env, ...merged }, false);
  }
  assert.deepEqual(configOf(router).roles, ['router']);
  assert.deepEqual(configOf(control).roles, ['api', 'worker']);
});

test('what comes from a Secret is in the example of one, and nothing secret is written down', () => {
  const example = Object.keys(secrets).sort();
  const keys = [...read(`${root}/example/secret.env.example`).matchAll(/^([a-z-]+)=/gm)].map(([, key]) => key!);
  assert.deepEqual(keys.sort(), example);
  for (const { container } of workloads) {
    for (const { name, valueFrom } of container.env) {
      const isSecret = /_(TOKEN|KEY|DATABASE_URL)$|^SLUICE_DATABASE_URL$/.test(name);
      assert.equal(valueFrom?.secretKeyRef.name === 'sluice', isSecret, name);
    }
  }
});

test('pods satisfy the Pod Security Standard “restricted”, and write nowhere but into their own volumes', () => {
  const labels = find('Namespace', 'sluice').metadata.labels;
  assert.equal(labels['pod-security.kubernetes.io/enforce'], 'restricted');
  for (const { spec, container, env, name } of workloads) {
    const pod = spec.template.spec;
    for (const key of ['hostNetwork', 'hostPID', 'hostIPC', 'initContainers']) assert.equal(pod[key], undefined, key);
    const { runAsNonRoot, runAsUser, seccompProfile } = pod.securityContext;
    assert.deepEqual([runAsNonRoot, seccompProfile], [true, { type: 'RuntimeDefault' }], name);
    assert.equal(
      `USER ${runAsUser}:${pod.securityContext.runAsGroup}`,
      /^USER .*$/m.exec(read('deploy/Containerfile'))![0],
    );
    assert.deepEqual(container.securityContext, {
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ['ALL'] },
    });
    for (const volume of pod.volumes) assert.deepEqual(Object.keys(volume).sort(), ['emptyDir', 'name']);
    const mounted = container.volumeMounts.map(({ mountPath }: Manifest) => mountPath);
    assert.deepEqual(mounted.sort(), ['/data', '/tmp']);
    // Not the mount itself, which belongs to root and is open to all.
    assert.equal(dirname(env.SLUICE_DATA_DIR!), '/data');
    for (const { containerPort } of container.ports) assert.ok(containerPort > 1024);
    assert.ok(
      container.resources.requests.cpu && container.resources.requests.memory && container.resources.limits.memory,
    );
  }
});

test('probes ask for pages that exist, on ports that are open', () => {
  const portOf = ({ container }: Workload, name: string) =>
    container.ports.find((port: Manifest) => port.name === name)?.containerPort;
  const probes = ({ container }: Workload) =>
    (['startupProbe', 'livenessProbe', 'readinessProbe'] as const).map((kind) => container[kind].httpGet);
  assert.deepEqual(probes(router), [
    { path: probePaths.live, port: 'http' },
    { path: probePaths.live, port: 'http' },
    { path: probePaths.ready, port: 'http' },
  ]);
  const pages = read('src/http/service-pages.ts');
  for (const { path, port } of probes(control)) {
    assert.match(pages, new RegExp(`server\\.get(<.*>)?\\('${path}'`));
    assert.equal(port, 'api');
  }
  const config = configOf(router);
  assert.deepEqual([portOf(router, 'http'), portOf(router, 'https')], [config.routerPort, config.routerTlsPort]);
  assert.deepEqual([portOf(router, 'metrics'), portOf(control, 'api')], [config.port, configOf(control).port]);
  for (const one of [find('Service', 'sluice-router'), find('Service', 'sluice-api')]) {
    const of = one.spec.selector['app.kubernetes.io/component'] === 'router' ? router : control;
    for (const { targetPort } of one.spec.ports)
      assert.ok(portOf(of, targetPort), `${one.metadata.name}: ${targetPort}`);
  }
  const { ports } = find('Service', 'sluice-router').spec;
  const shown = configOf(control);
  assert.deepEqual(
    ports.map((each: Manifest) => each.port),
    [shown.routerPort, shown.routerTlsPort],
  );
});

test('a rolling update hands over: a new pod is ready first, an old one has the time it needs', () => {
  const killMarginS = 10;
  for (const { name, spec, container, ...rest } of workloads) {
    assert.deepEqual(spec.strategy.rollingUpdate, { maxUnavailable: 0, maxSurge: 1 });
    assert.ok(spec.replicas >= 2);
    const [program, seconds] = container.lifecycle.preStop.exec.command;
    assert.equal(program, '/bin/sleep');
    const { drainS } = configOf({ name, spec, container, ...rest });
    const neededS = Number(seconds) + drainS + killMarginS + 20;
    const { terminationGracePeriodSeconds } = spec.template.spec;
    assert.ok(terminationGracePeriodSeconds >= neededS, `${name}: ${terminationGracePeriodSeconds} < ${neededS}`);
    const budget = find('PodDisruptionBudget', name).spec;
    assert.equal(budget.maxUnavailable, 1);
    for (const selector of [spec.selector, budget.selector]) {
      assert.deepEqual(selector.matchLabels, spec.template.metadata.labels);
    }
    for (const { labelSelector } of spec.template.spec.topologySpreadConstraints) {
      assert.deepEqual(labelSelector.matchLabels, spec.template.metadata.labels);
    }
  }
});

test('routers have no account; the control plane has the rights that the engine uses, where it uses them', () => {
  const pod = (of: Workload) => of.spec.template.spec;
  assert.deepEqual([pod(router).automountServiceAccountToken, pod(router).serviceAccountName], [false, undefined]);
  assert.equal(pod(control).serviceAccountName, find('ServiceAccount', 'sluice-control').metadata.name);
  const rightsOf = (role: Manifest) =>
    Object.fromEntries(
      role.rules.flatMap(({ apiGroups, resources, verbs }: Manifest) =>
        resources.map((name: string) => [[apiGroups[0], name].filter(Boolean).join('/'), verbs.toSorted()]),
      ),
    );
  const { namespaces, ...inOne } = Object.fromEntries(
    Object.entries(engineCalls).map(([name, verbs]) => [name, [...verbs].sort()]),
  );
  const role = find('Role', 'sluice-engine');
  assert.deepEqual(rightsOf(role), inOne);
  const region = configOf(control).regions[0]!;
  assert.deepEqual(region.engine.kind, 'kubernetes');
  assert.deepEqual(configOf(control).kubernetes.namespaces, { kind: 'one', name: role.metadata.namespace });
  const ofAll = objectsOf('namespace-per-project').find(({ kind }) => kind === 'ClusterRole');
  assert.deepEqual(rightsOf(ofAll), { ...inOne, namespaces });
});

test('compose.yaml: valid settings, the database where it is, all data in volumes, and time to drain', () => {
  const { services, volumes } = parse(read('deploy/compose.yaml'));
  const given: Record<string, string> = { POSTGRES_PASSWORD: 'secret' };
  const filled = (text: string) =>
    text.replaceAll(/\$\{(\w+)(?::([-?])([^}]*))?\}/g, (_, name, operator, rest) => {
      const value = given[name] ?? (operator === '-' ? rest : undefined);
      assert.ok(value !== undefined, name);
      return value;
    });
  const { sluice, postgres } = services;
  for (const name of Object.keys(sluice.environment)) assert.ok(name in settings, name);
  const environment = Object.fromEntries(
    Object.entries<string>(sluice.environment).map(([name, value]) => [name, filled(value)]),
  );
  const config = readConfig({ ...environment, SLUICE_DATA_DIR: '/data' }, false);
  const database = new URL(config.databaseUrl!);
  assert.equal(database.username, postgres.environment.POSTGRES_USER);
  assert.equal(database.password, filled(postgres.environment.POSTGRES_PASSWORD));
  assert.ok(postgres.ports[0].startsWith(`${database.host}:`));
  assert.equal(globSync(join('deploy', sluice.build.context, sluice.build.dockerfile)).length, 1);
  assert.match(read('deploy/Containerfile'), /SLUICE_DATA_DIR=\/data/);
  const kept = [...sluice.volumes, ...postgres.volumes].map((mount: string) => mount.split(':')[0]!);
  assert.deepEqual(
    kept.filter((name) => !name.startsWith('/')),
    Object.keys(volumes),
  );
  assert.ok(Number.parseInt(sluice.stop_grace_period, 10) > Number(settings.SLUICE_DRAIN_S.default));
});

test('a build of the image gets node from the checkout, with every builder of Docker', () => {
  const { optionalDependencies } = JSON.parse(read('package.json'));
  const modules = Object.keys(optionalDependencies).filter((name) => name.startsWith('node-linux-'));
  // The builder of Docker before 23, which is Debian 12's, finds exceptions only in folders that are named in full.
  const exceptions = ['!sluice-*.tgz', ...modules.map((name) => `!node_modules/${name}/bin/node`)];
  const [ignored, ...kept] = read('.dockerignore').trim().split('\n');
  assert.deepEqual([ignored, kept.sort()], ['*', exceptions.sort()]);
});
