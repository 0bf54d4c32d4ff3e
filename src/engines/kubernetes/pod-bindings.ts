// Writes down which pod is which instance, as soon as the cluster has made a pod (members.ts). Every process does so; the
// first one decides.

import type { Log } from '../../lib/log.ts';
import { fieldManager, isStatus, type KubeClient } from './kube-client.ts';
import type { Pod } from './kube-objects.ts';
import { membersOf, podsToGive } from './members.ts';
import { annotation, podPath } from './object-names.ts';
import type { ObservedCluster, ObservedSets } from './observed-cluster.ts';

/** Changes come in bursts. */
const afterMs = 20;

export class PodBindings {
  readonly #client: KubeClient;
  readonly #observed: ObservedCluster;
  readonly #log: Log | undefined;
  readonly #unlisten: () => void;
  /** The uids of pods that are being written. */
  readonly #writing = new Set<string>();
  /** What there was to do for it has been begun. */
  #done: ObservedSets | null = null;
  #timer: NodeJS.Timeout | null = null;

  constructor(client: KubeClient, observed: ObservedCluster, log?: Log) {
    this.#client = client;
    this.#observed = observed;
    this.#log = log;
    this.#unlisten = observed.listen(() => this.bindSoon());
  }

  /** Nothing may rely on changes alone: the last one may have come before everything could be seen. */
  bindSoon(): void {
    this.#timer ??= setTimeout(() => this.#bindAll(), afterMs);
  }

  #bindAll(): void {
    this.#timer = null;
    const seen = this.#observed.seen();
    if (seen === null || seen === this.#done) return;
    this.#done = seen;
    for (const { replicaSet, pods } of seen.values()) {
      if (!replicaSet || replicaSet.metadata.deletionTimestamp !== undefined) continue;
      for (const [member, pod] of podsToGive(membersOf(replicaSet), pods)) {
        if (this.#writing.has(pod.metadata.uid!)) continue;
        this.#bind(pod, member).catch((error) => {
          this.#done = null;
          const { name, namespace } = pod.metadata;
          this.#log?.warn({ err: error, pod: name, namespace, instance: member }, 'a pod was not given its instance');
        });
      }
    }
  }

  /** Does nothing where the pod is gone, or another process was faster: what it wrote is seen in a moment. */
  async #bind(pod: Pod, member: string): Promise<void> {
    const { name, namespace, resourceVersion, uid } = pod.metadata;
    this.#writing.add(uid!);
    try {
      await this.#client.request({
        method: 'PATCH',
        path: podPath(namespace!, name),
        query: { fieldManager },
        contentType: 'application/merge-patch+json',
        body: { metadata: { resourceVersion, annotations: { [annotation.instance]: member } } },
      });
    } catch (error) {
      if (!isStatus(error, 404, 409)) throw error;
    } finally {
      this.#writing.delete(uid!);
    }
  }

  stop(): void {
    this.#unlisten();
    if (this.#timer) clearTimeout(this.#timer);
  }
}
