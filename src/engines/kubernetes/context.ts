import { EngineError } from '../engine.ts';
import type { Registry } from '../registry/registry.ts';
import type { Cache } from './api/cache.ts';
import type { KubeClient } from './api/client.ts';
import type { Pod, ReplicaSet } from './api/objects.ts';
import { label, type Namespaces, selectorOf } from './objects/names.ts';
import type { Routers } from './objects/routers.ts';

/** What every part of the engine works with. */
export interface KubeContext {
  client: KubeClient;
  /** The installation and region that own the objects. */
  owner: string;
  namespaces: Namespaces;
  /** Who may send requests to instances; none: anyone may. */
  routers: Routers[];
  registry: Registry;
  pods: Cache<Pod>;
  replicaSets: Cache<ReplicaSet>;
}

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
