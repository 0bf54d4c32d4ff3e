// What objects are called, and the labels by which they are found again.
import { createHash } from 'node:crypto';
import { revisionId } from '../../contract/references.ts';
import { EngineError, type InstanceSet } from '../engine.ts';

export const label = {
  managedBy: 'app.kubernetes.io/managed-by',
  installation: 'sluice.installation',
  set: 'sluice.set',
  project: 'sluice.project',
  environment: 'sluice.environment',
  revision: 'sluice.revision',
};

export const annotation = {
  /** Of a ReplicaSet: the instances that it should have, separated by commas. */
  instances: 'sluice.instances',
  /** Of a pod: which of them it is. */
  instance: 'sluice.instance',
};

/** Of the pods of a ReplicaSet, those with the lowest go first. */
export const deletionCost = 'controller.kubernetes.io/pod-deletion-cost';

const hashOf = (text: string): string => createHash('sha256').update(text).digest('hex').slice(0, 8);

/** A part of a name: lower-case letters, digits and hyphens; what is not itself one gets a hash, so that no two are the same. */
export function dnsLabel(text: string, maxLength: number): string {
  const plain = text
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-+|-+$/g, '');
  if (plain === text && text.length <= maxLength) return text;
  return `${plain.slice(0, maxLength - 9)}-${hashOf(text)}`.replace(/^-/, '');
}

type Named = Pick<InstanceSet, 'id' | 'environment' | 'revision'>;

/**
 * Of the ReplicaSet and what belongs to it, as people know it; the hash keeps apart the sets of projects and installations that
 * share a namespace. Pods add six characters of the 63.
 */
export const setName = (owner: string, { id, environment, revision }: Named): string =>
  `${dnsLabel(environment, 30)}-${revisionId(revision)}-${hashOf(`${owner} ${id}`)}`;

export const variablesName = (owner: string, set: Named): string => `${setName(owner, set)}-env`;
export const pullSecretName = (owner: string, set: Named): string => `${setName(owner, set)}-pull`;
export const policyName = (owner: string): string => `sluice-${hashOf(owner)}`;

/** Which namespace the sets of a project are in. */
export type Namespaces = { kind: 'one'; name: string } | { kind: 'per-project'; prefix: string };

export function namespaceOf(namespaces: Namespaces, project: string): string {
  if (namespaces.kind === 'one') return namespaces.name;
  return `${namespaces.prefix}${dnsLabel(project, 63 - namespaces.prefix.length)}`;
}

export const selectorOf = (owner: string): string => `${label.installation}=${labelValue(owner)}`;

type SetIdentity = Pick<InstanceSet, 'id' | 'project' | 'environment' | 'revision'>;

export const labelsOf = (
  owner: string,
  { id, project, environment, revision }: SetIdentity,
): Record<string, string> => ({
  [label.managedBy]: 'sluice',
  [label.installation]: labelValue(owner),
  [label.set]: labelValue(id),
  [label.project]: labelValue(project),
  [label.environment]: labelValue(environment),
  [label.revision]: String(revision),
});

function labelValue(text: string): string {
  if (/^[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?$/.test(text)) return text;
  throw new EngineError('start_failed', `"${text}" cannot be a label in Kubernetes`);
}

/** null: not of a set. */
export function setIdentityOf(labels: Record<string, string> | undefined): SetIdentity | null {
  const { [label.set]: id, [label.project]: project, [label.environment]: environment } = labels ?? {};
  const revision = Number(labels?.[label.revision]);
  if (id === undefined || project === undefined || environment === undefined) return null;
  return Number.isInteger(revision) ? { id, project, environment, revision } : null;
}

/** Whether this installation made it. */
export const isOwn = (owner: string, labels: Record<string, string> | undefined): boolean =>
  labels?.[label.installation] === owner;

/** Of all objects of a kind: those of the one namespace, or of the whole cluster. */
export function pathOf(namespaces: Namespaces, kind: 'pods' | 'replicasets'): string {
  const group = kind === 'pods' ? '/api/v1' : '/apis/apps/v1';
  return namespaces.kind === 'one' ? `${group}/namespaces/${namespaces.name}/${kind}` : `${group}/${kind}`;
}

export const podPath = (namespace: string, name: string): string => `/api/v1/namespaces/${namespace}/pods/${name}`;
export const replicaSetPath = (namespace: string, name: string): string =>
  `/apis/apps/v1/namespaces/${namespace}/replicasets/${name}`;

/** Of one set, which may be of no other installation. */
export const setSelector = (owner: string, id: string): string => `${selectorOf(owner)},${label.set}=${id}`;

/** Before anything is put into a path or a selector. */
export function requireId(id: string): string {
  if (/^[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?$/.test(id)) return id;
  throw new EngineError('start_failed', `"${id}" cannot be the name of a set in Kubernetes`);
}
