// A set as a ReplicaSet. Not a Deployment: that would be a second one to decide how a revision is rolled out.
import { pinImage } from '../../../contract/image-reference.ts';
import type { InstanceSet } from '../../engine.ts';
import { annotation, label, labelsOf, pullSecretName, setName, variablesName } from './names.ts';
import { probesOf } from './probes.ts';
import { containerSecurity, type PodSecurity } from './security.ts';

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
