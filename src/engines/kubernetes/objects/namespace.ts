// The namespace of a project, and who may send requests to what is in it.
import { rangeText } from '../../../lib/address.ts';
import { label, policyName } from './names.ts';
import type { Routers } from './routers.ts';

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
