// What the cluster has of this installation: ReplicaSets and their pods, followed by one watch per kind.

import type { KubeClient } from './kube-client.ts';
import type { KubeObject, Pod, ReplicaSet } from './kube-objects.ts';
import { type Cache, listAll, type WatchTimes, watchedCache } from './kube-watch.ts';
import { label, type Namespaces, pathOf, selectorOf } from './object-names.ts';
import { pullMessage } from './pod-status.ts';

interface ObservedSet {
  replicaSet: ReplicaSet | undefined;
  pods: Pod[];
}

/** By the id of the set. */
export type ObservedSets = ReadonlyMap<string, ObservedSet>;

interface ObservedOptions {
  client: KubeClient;
  owner: string;
  namespaces: Namespaces;
  times?: WatchTimes | undefined;
}

/** An object that changed; null: any may have. */
type Listener = (object: KubeObject | null) => void;

export class ObservedCluster {
  readonly #options: ObservedOptions;
  readonly #listeners = new Set<Listener>();
  /** By the uid of the pod: newer kubelets lose it when they begin to back off. */
  readonly #pullMessages = new Map<string, string>();
  /** What the watches have seen since the last change. */
  #known: ObservedSets | null = null;
  readonly pods: Cache<Pod>;
  readonly replicaSets: Cache<ReplicaSet>;

  constructor(options: ObservedOptions) {
    this.#options = options;
    this.pods = this.#follow<Pod>('pods', (pod) => this.#remember(pod));
    this.replicaSets = this.#follow<ReplicaSet>('replicasets', () => {});
  }

  #follow<T extends KubeObject>(kind: 'pods' | 'replicasets', onObject: (object: T) => void): Cache<T> {
    const { client, owner, namespaces, times } = this.#options;
    const notify = (object: KubeObject | null) => {
      this.#known = null;
      for (const listener of this.#listeners) listener(object);
    };
    return watchedCache<T>(client, {
      path: pathOf(namespaces, kind),
      labelSelector: selectorOf(owner),
      onChange: (object) => {
        if (object) onObject(object);
        notify(object);
      },
      onLost: () => notify(null),
      times,
    });
  }

  #remember(pod: Pod): void {
    const uid = pod.metadata.uid!;
    if (pod.metadata.deletionTimestamp !== undefined) this.#pullMessages.delete(uid);
    const message = pullMessage(pod);
    if (message !== null && !this.#pullMessages.has(uid)) this.#pullMessages.set(uid, message);
  }

  firstPullMessageOf = (pod: Pod): string | null => this.#pullMessages.get(pod.metadata.uid!) ?? null;

  /** From what the watches have seen; where they have not, the cluster is asked. */
  async sets(): Promise<ObservedSets> {
    const seen = this.seen();
    if (seen) return seen;
    return groupBySet(...(await Promise.all([this.#list<ReplicaSet>('replicasets'), this.#list<Pod>('pods')])));
  }

  /** What the watches have seen; null: not all of it. Asked for several times a second, and computed once per change. */
  seen(): ObservedSets | null {
    if (!this.replicaSets.isCurrent() || !this.pods.isCurrent()) return null;
    this.#known ??= groupBySet(this.replicaSets.all()!, this.pods.all()!);
    return this.#known;
  }

  async #list<T extends KubeObject>(kind: 'pods' | 'replicasets'): Promise<T[]> {
    const { client, owner, namespaces } = this.#options;
    const asked = { path: pathOf(namespaces, kind), labelSelector: selectorOf(owner) };
    return (await listAll<T>(client, asked)).objects;
  }

  listen(listener: Listener): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  stop(): void {
    this.pods.stop();
    this.replicaSets.stop();
  }
}

function groupBySet(replicaSets: ReplicaSet[], pods: Pod[]): Map<string, ObservedSet> {
  const sets = new Map<string, ObservedSet>();
  const setOf = ({ metadata }: KubeObject): ObservedSet => {
    const id = metadata.labels?.[label.set] ?? '';
    const known = sets.get(id) ?? { replicaSet: undefined, pods: [] };
    sets.set(id, known);
    return known;
  };
  for (const replicaSet of replicaSets) setOf(replicaSet).replicaSet = replicaSet;
  for (const pod of pods) setOf(pod).pods.push(pod);
  return sets;
}
