// The objects that the engine writes to a cluster: the ReplicaSet of a set, its Secrets, and the namespace of a project
// with its NetworkPolicy. No I/O.
import type { HealthCheck } from '../../contract/environments.ts';
import { pinImage, revisionId } from '../../contract/references.ts';
import { rangeText } from '../../lib/address.ts';
import type { InstanceSet, RegistryAuth } from '../engine.ts';
import type { Routers } from './kubernetes-settings.ts';
import { annotation, label, labelsOf, policyName, pullSecretName, setName, variablesName } from './object-names.ts';

export const containerName = 'app';

const defaultDrainS = 10;
/** After this, instances on a machine that does not answer are replaced elsewhere. */
const nodeAwayS = 30;

interface SetContext {
  owner: string;
  namespace: string;
  security: PodSecurity;
}

/** Without any instance yet. */
export function replicaSetOf(set: InstanceSet, { owner, namespace, security }: SetContext): object {
  const labels = labelsOf(owner, set);
  const identity = { [label.installation]: labels[label.installation], [label.set]: labels[label.set] };
  return {
    apiVersion: 'apps/v1',
    kind: 'ReplicaSet',
    metadata: { name: setName(owner, set), namespace, labels, annotations: { [annotation.instances]: '' } },
    spec: {
      replicas: 0,
      selector: { matchLabels: identity },
      template: { metadata: { labels }, spec: podSpec(set, owner, labels, security) },
    },
  };
}

function podSpec(set: InstanceSet, owner: string, labels: Record<string, string>, security: PodSecurity): object {
  const { [label.set]: _, [label.managedBy]: __, ...siblings } = labels;
  return {
    automountServiceAccountToken: false,
    enableServiceLinks: false,
    // The pod's first process reaps orphaned processes; the program, not being the first, ends when it is asked to.
    shareProcessNamespace: true,
    terminationGracePeriodSeconds: Math.max(1, Math.ceil(set.drainS ?? defaultDrainS)),
    ...(set.login && { imagePullSecrets: [{ name: pullSecretName(owner, set) }] }),
    topologySpreadConstraints: [
      {
        maxSkew: 1,
        topologyKey: 'kubernetes.io/hostname',
        whenUnsatisfiable: 'ScheduleAnyway',
        labelSelector: { matchLabels: siblings },
      },
    ],
    tolerations: ['not-ready', 'unreachable'].map((what) => ({
      key: `node.kubernetes.io/${what}`,
      operator: 'Exists',
      effect: 'NoExecute',
      tolerationSeconds: nodeAwayS,
    })),
    containers: [containerOf(set, owner, security)],
  };
}

function containerOf(set: InstanceSet, owner: string, security: PodSecurity): object {
  const { memory_mb, cpus } = set.resources;
  const isNamed = 'DEPLOY_INSTANCE' in set.variables;
  return {
    name: containerName,
    image: pinImage(set.image, set.digest),
    imagePullPolicy: 'IfNotPresent',
    ports: [{ containerPort: set.port, protocol: 'TCP' }],
    envFrom: [{ secretRef: { name: variablesName(owner, set) } }],
    ...(!isNamed && { env: [{ name: 'DEPLOY_INSTANCE', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } }] }),
    resources: {
      limits: { memory: `${memory_mb}Mi`, cpu: millis(cpus), 'ephemeral-storage': '10G' },
      // Memory cannot be shared once it is used; computing time can.
      requests: { memory: `${memory_mb}Mi`, cpu: millis(cpus / 10), 'ephemeral-storage': '100M' },
    },
    securityContext: containerSecurity(security),
    ...probesOf(set.healthCheck ?? null, set.port),
  };
}

const millis = (cpus: number): string => `${Math.max(1, Math.round(cpus * 1000))}m`;

const defaultHealthCheck: HealthCheck = {
  path: null,
  interval_s: 2,
  timeout_s: 2,
  healthy_after: 1,
  unhealthy_after: 3,
  start_timeout_s: 60,
};

/** The kubelet restarts what has not started by then; the service gives up before that, and knows why. */
const startMarginS = 60;

/**
 * A health check as probes of the kubelet. Until an instance is healthy for the first time it is probed every second,
 * because people are waiting for the deployment; then at the interval of the check.
 */
function probesOf(check: HealthCheck | null, port: number): object {
  const { path, interval_s, timeout_s, healthy_after, unhealthy_after, start_timeout_s } = check ?? defaultHealthCheck;
  const how = path === null ? { tcpSocket: { port } } : { httpGet: { path, port, scheme: 'HTTP' } };
  return {
    startupProbe: {
      ...how,
      periodSeconds: 1,
      timeoutSeconds: timeout_s,
      successThreshold: 1,
      failureThreshold: start_timeout_s + startMarginS,
    },
    readinessProbe: {
      ...how,
      periodSeconds: interval_s,
      timeoutSeconds: timeout_s,
      successThreshold: healthy_after,
      failureThreshold: unhealthy_after,
    },
  };
}

/**
 * The Pod Security level of a container: `restricted` where the image names a user by a number other than 0, because
 * only then can Kubernetes know that it is not root; `baseline` otherwise.
 */
export type PodSecurity = 'restricted' | 'baseline';

/** `user` as an image names it: `1000`, `1000:1000`, `app`, `app:app`, or nothing. */
export function securityFor(user: string): PodSecurity {
  const [name = ''] = user.split(':');
  return /^[0-9]+$/.test(name) && Number(name) > 0 ? 'restricted' : 'baseline';
}

/** Granted by default, and nothing that a web service needs. The others let an entry point prepare files and switch users. */
const needlessCapabilities = ['AUDIT_WRITE', 'MKNOD', 'NET_RAW', 'SETFCAP', 'SETPCAP', 'SYS_CHROOT'];

function containerSecurity(level: PodSecurity): object {
  const isRestricted = level === 'restricted';
  return {
    allowPrivilegeEscalation: false,
    privileged: false,
    capabilities: { drop: isRestricted ? ['ALL'] : needlessCapabilities },
    seccompProfile: { type: 'RuntimeDefault' },
    ...(isRestricted && { runAsNonRoot: true }),
  };
}

/** The ReplicaSet: what it owns is removed with it. */
interface Owner {
  name: string;
  uid: string;
  namespace: string;
}

function secret(owner: string, set: InstanceSet, { uid, namespace }: Owner, name: string, rest: object): object {
  const ownerReferences = [{ apiVersion: 'apps/v1', kind: 'ReplicaSet', name: setName(owner, set), uid }];
  const metadata = { name, namespace, labels: labelsOf(owner, set), ownerReferences };
  return { apiVersion: 'v1', kind: 'Secret', metadata, ...rest };
}

const base64 = (text: string): string => Buffer.from(text).toString('base64');

/** The variables never change. The login of the registry may. */
export function variablesSecret(owner: string, set: InstanceSet, replicaSet: Owner): object {
  const variables: Record<string, string> = {
    DEPLOY_PROJECT: set.project,
    DEPLOY_ENVIRONMENT: set.environment,
    DEPLOY_REVISION: revisionId(set.revision),
    ...set.variables,
    PORT: String(set.port),
  };
  const data = Object.fromEntries(Object.entries(variables).map(([name, value]) => [name, base64(value)]));
  return secret(owner, set, replicaSet, variablesName(owner, set), { type: 'Opaque', immutable: true, data });
}

/**
 * A drain evicts one instance of a set after another, each when the one before runs elsewhere; so the only one of a set is
 * no reason to refuse, and neither is one that does not run.
 */
export function disruptionBudget(owner: string, set: InstanceSet, { uid, namespace, name }: Owner): object {
  const labels = labelsOf(owner, set);
  const identity = { [label.installation]: labels[label.installation], [label.set]: labels[label.set] };
  const ownerReferences = [{ apiVersion: 'apps/v1', kind: 'ReplicaSet', name, uid }];
  return {
    apiVersion: 'policy/v1',
    kind: 'PodDisruptionBudget',
    metadata: { name, namespace, labels, ownerReferences },
    spec: { maxUnavailable: 1, unhealthyPodEvictionPolicy: 'AlwaysAllow', selector: { matchLabels: identity } },
  };
}

export function pullSecret(owner: string, set: InstanceSet, login: RegistryAuth, replicaSet: Owner): object {
  const { username, password, identitytoken } = login;
  const entry = {
    ...(identitytoken === undefined ? { username, password } : { identitytoken }),
    auth: base64(`${username}:${password}`),
  };
  const server = login.server === 'docker.io' ? 'https://index.docker.io/v1/' : login.server;
  return secret(owner, set, replicaSet, pullSecretName(owner, set), {
    type: 'kubernetes.io/dockerconfigjson',
    data: { '.dockerconfigjson': base64(JSON.stringify({ auths: { [server]: entry } })) },
  });
}

export function namespaceObject(owner: string, name: string, project: string): object {
  return {
    apiVersion: 'v1',
    kind: 'Namespace',
    metadata: {
      name,
      labels: {
        [label.managedBy]: 'sluice',
        [label.installation]: owner,
        [label.project]: project,
        'pod-security.kubernetes.io/enforce': 'baseline',
      },
    },
  };
}

/** Admits requests from routers to the pods of this installation, and from nobody else. */
export function networkPolicy(owner: string, namespace: string, routers: Routers[]): object {
  return {
    apiVersion: 'networking.k8s.io/v1',
    kind: 'NetworkPolicy',
    metadata: {
      name: policyName(owner),
      namespace,
      labels: { [label.managedBy]: 'sluice', [label.installation]: owner },
    },
    spec: {
      podSelector: { matchLabels: { [label.installation]: owner } },
      policyTypes: ['Ingress'],
      ingress: [{ from: routers.map(peerOf) }],
    },
  };
}

function peerOf(routers: Routers): object {
  if ('range' in routers) return { ipBlock: { cidr: rangeText(routers.range) } };
  return {
    namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': routers.namespace } },
    podSelector: { matchLabels: routers.labels },
  };
}
