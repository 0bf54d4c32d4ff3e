// The settings of Kubernetes regions.
import { homedir } from 'node:os';
import { join, resolve } from 'node:path';
import { choice, invalid } from '../../lib/setting-parsers.ts';
import type { Namespaces } from './objects/names.ts';
import { parseRouters, type Routers } from './objects/routers.ts';

export interface KubernetesSettings {
  kubeconfig: string;
  allowExec: boolean;
  namespaces: Namespaces;
  routers: Routers[];
}

function namespaceName(value: string): string | null {
  if (value === '') return null;
  return /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/.test(value) ? value : invalid('must be the name of a namespace');
}

function namespacePrefix(value: string): string {
  return /^[a-z][a-z0-9-]{0,29}$/.test(value)
    ? value
    : invalid('must be up to 30 lower-case letters, digits and hyphens, the first a letter');
}

export const kubernetesSettings = {
  SLUICE_KUBECONFIG: {
    default: '',
    about: 'The kubeconfig file that `kubernetes:[context]` in `SLUICE_REGIONS` refers to. Empty: `~/.kube/config`.',
    parse: (value: string) => (value === '' ? join(homedir(), '.kube/config') : resolve(value)),
  },
  SLUICE_KUBERNETES_EXEC: {
    default: 'off',
    about:
      '`on`: programs that the kubeconfig names for credentials (`exec`, as the clouds have them) are run. With `off`, a ' +
      'region that needs one stops the start.',
    parse: (value: string) => choice(['on', 'off'])(value) === 'on',
  },
  SLUICE_KUBERNETES_NAMESPACE: {
    default: '',
    about: 'The namespace, made by you, that all instances on Kubernetes run in. Empty: each project gets its own.',
    parse: namespaceName,
  },
  SLUICE_KUBERNETES_NAMESPACE_PREFIX: {
    default: 'sluice-',
    about: 'How the namespaces that projects get begin; the id of the project follows.',
    parse: namespacePrefix,
  },
  SLUICE_KUBERNETES_ROUTERS: {
    default: '',
    about:
      'Who may send requests to instances on Kubernetes, comma-separated: ranges of addresses (`10.0.0.0/8`), pods of a ' +
      'namespace (`sluice:`), or those with a label (`sluice:app=router`); a NetworkPolicy admits nobody else. Empty: with ' +
      '`kubernetes:in-cluster` the pods of the service’s own namespace, otherwise anyone, without a policy.',
    parse: parseRouters,
  },
};
