// The settings of Kubernetes regions.
import { existsSync } from 'node:fs';
import { homedir } from 'node:os';
import { delimiter, join, resolve } from 'node:path';
import { parseRange, type Range } from '../../lib/address.ts';
import { choice, invalid } from '../../lib/setting-parsers.ts';
import type { Namespaces } from './object-names.ts';

export interface KubernetesSettings {
  kubeconfig: string;
  /** The API of the cluster that this runs in, if it runs in one. */
  ownServer: string;
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

/** Where kubectl looks: files are separated by colons, and the first one that is there counts. */
export function usualKubeconfig(variable: string | undefined): string {
  const paths = (variable ?? '').split(delimiter).filter((path) => path !== '');
  const found = paths.find((path) => existsSync(path)) ?? paths[0];
  return found === undefined ? join(homedir(), '.kube/config') : resolve(found);
}

/** As pods are told it: the address of the API, so that a cluster's DNS may be away, and its name if there is none. */
export function ownServer(host: string | undefined, port: string | undefined): string {
  if (!host) return 'https://kubernetes.default.svc';
  return `https://${host.includes(':') ? `[${host}]` : host}:${port || 443}`;
}

export const kubernetesSettings = {
  SLUICE_KUBECONFIG: {
    default: '',
    about:
      'kubeconfig file for `kubernetes:[context]` regions. Empty: the first file of `$KUBECONFIG`, or `~/.kube/config`.',
    parse: (value: string) => (value === '' ? null : resolve(value)),
  },
  SLUICE_KUBERNETES_EXEC: {
    default: 'off',
    about:
      '`on`: run the credential plugins (`exec`) that the kubeconfig names. `off`: refuse to start if a region needs one.',
    parse: (value: string) => choice(['on', 'off'])(value) === 'on',
  },
  SLUICE_KUBERNETES_NAMESPACE: {
    default: '',
    about: 'An existing namespace for all instances. Empty: Sluice creates one namespace per project.',
    parse: namespaceName,
  },
  SLUICE_KUBERNETES_NAMESPACE_PREFIX: {
    default: 'sluice-',
    about: 'Prefix of the namespaces that Sluice creates. The project id follows.',
    parse: namespacePrefix,
  },
  SLUICE_KUBERNETES_ROUTERS: {
    default: '',
    about:
      'Sources that may reach instances, comma-separated: `10.0.0.0/8`, `namespace:` or `namespace:label=value`. A NetworkPolicy blocks all others.',
    parse: parseRouters,
  },
};

/**
 * Where visitors' requests come from: machines by their addresses, or pods by their namespace and, unless all of them
 * count, a label.
 */
export type Routers = { range: Range } | { namespace: string; labels: Record<string, string> };

const podsOf = /^([a-z0-9-]{1,63}):(?:([\w./-]{1,120})=([\w.-]{1,63}))?$/;

export function parseRouters(value: string): Routers[] {
  return value
    .split(',')
    .map((item) => item.trim())
    .filter((item) => item !== '')
    .map((item) => {
      const range = parseRange(item);
      if (range) return { range };
      const [, namespace, label, text = ''] = podsOf.exec(item) ?? [];
      if (namespace === undefined)
        return invalid(`"${item}" is neither a range such as 10.0.0.0/8 nor pods: namespace:label=value`);
      return { namespace, labels: label === undefined ? {} : { [label]: text } };
    });
}
