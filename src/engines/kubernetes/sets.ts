// Keeps and drops sets. Each is a ReplicaSet with what it owns: a Secret with its variables and, where its registry wants
// one, a Secret with the login. The ReplicaSet comes first and with no pods, so that it can own the others; its number is
// set when they are there. A crash in between leaves what the next keep() completes, or what drop() removes.
import { EngineError } from '../engine.ts';
import { fieldManager } from './api/client.ts';
import { isStatus } from './api/kube-error.ts';
import type { Pod, ReplicaSet } from './api/objects.ts';
import { listAll } from './api/watch.ts';
import { apply, find } from './apply.ts';
import { type KubeContext, pathOf, podPath, replicaSetPath, requireId, setSelector } from './context.ts';
import type { InstanceSet } from './instance-set.ts';
import type { ProjectNamespaces } from './namespaces.ts';
import { deletionCost, isOwn, label, pullSecretName, setName, variablesName } from './objects/names.ts';
import { replicaSetOf } from './objects/replica-set.ts';
import { pullSecret, variablesSecret } from './objects/secrets.ts';
import { type PodSecurity, securityFor } from './objects/security.ts';
import { hasRunning } from './status/pod.ts';

const seenWithinMs = 5_000;

export class Sets {
  readonly #context: KubeContext;
  readonly #projects: ProjectNamespaces;
  /** The login that each set's Secret was last written with. */
  readonly #logins = new Map<string, string>();

  constructor(context: KubeContext, projects: ProjectNamespaces) {
    this.#context = context;
    this.#projects = projects;
  }

  /** `retire`: pods that go first when there are fewer. */
  async keep(set: InstanceSet, count: number, retire: string[] = []): Promise<void> {
    requireId(set.id);
    const namespace = await this.#projects.ensure(set.project);
    try {
      await this.#keep(set, count, retire, namespace);
    } catch (error) {
      if (isStatus(error, 404)) this.#projects.forget(namespace);
      throw error;
    }
  }

  async #keep(set: InstanceSet, count: number, retire: string[], namespace: string): Promise<void> {
    const { client, owner } = this.#context;
    const path = replicaSetPath(namespace, setName(owner, set.id));
    const known = await find<ReplicaSet>(client, path);
    if (known) requireOwn(owner, known, path);
    const replicaSet = known ?? (await this.#create(set, path, namespace));
    const before = replicaSet.spec?.replicas ?? 0;
    const owning = { name: replicaSet.metadata.name, uid: replicaSet.metadata.uid!, namespace };
    if (before === 0 && count > 0) {
      // The same again where a crash left it there: the engine need not be allowed to read Secrets.
      const at = `/api/v1/namespaces/${namespace}/secrets/${variablesName(owner, set.id)}`;
      await apply(client, at, variablesSecret(owner, set, owning));
    }
    await this.#keepLogin(set, owning);
    if (before === count) return;
    for (const pod of retire) await this.#retire(namespace, pod);
    await client.request({
      method: 'PATCH',
      path: `${path}/scale`,
      query: { fieldManager },
      contentType: 'application/merge-patch+json',
      body: { spec: { replicas: count } },
    });
  }

  async #create(set: InstanceSet, path: string, namespace: string): Promise<ReplicaSet> {
    const { client, owner } = this.#context;
    const security = await this.#securityOf(set);
    const made = await apply<ReplicaSet>(client, path, replicaSetOf(set, 0, { owner, namespace, security }));
    requireOwn(owner, made, path);
    return made;
  }

  /** What cannot be asked now gets the rights that every image runs with. */
  async #securityOf({ image, digest, login }: InstanceSet): Promise<PodSecurity> {
    const config = await this.#context.registry.config(image, digest, login).catch(() => null);
    return config === null ? 'baseline' : securityFor(config.user);
  }

  /** Written again whenever it is another than last time: many registries issue passwords that expire within hours. */
  async #keepLogin(set: InstanceSet, owning: { name: string; uid: string; namespace: string }): Promise<void> {
    const { client, owner } = this.#context;
    const { login } = set;
    const text = JSON.stringify(login);
    if (!login || this.#logins.get(set.id) === text) return;
    const path = `/api/v1/namespaces/${owning.namespace}/secrets/${pullSecretName(owner, set.id)}`;
    await apply(client, path, pullSecret(owner, set, login, owning));
    this.#logins.set(set.id, text);
  }

  /** The controller has to know it before it chooses: our own watch has seen it then, and so, most likely, has its. */
  async #retire(namespace: string, pod: string): Promise<void> {
    const { client, pods } = this.#context;
    const body = { metadata: { annotations: { [deletionCost]: '-1000' } } };
    const contentType = 'application/merge-patch+json';
    try {
      await client.request({
        method: 'PATCH',
        path: podPath(namespace, pod),
        query: { fieldManager },
        contentType,
        body,
      });
    } catch (error) {
      if (isStatus(error, 404)) return;
      throw error;
    }
    const isSeen = () => pods.find(namespace, pod)?.metadata.annotations?.[deletionCost] !== undefined;
    await pods.until(isSeen, seenWithinMs);
  }

  /** Waits until nothing of it is left, `graceS` and a margin at most; `onEnd` runs when its programs have ended. */
  async drop(id: string, graceS: number, marginMs: number, onEnd?: () => Promise<void>): Promise<void> {
    requireId(id);
    const { client, owner, namespaces, pods, replicaSets } = this.#context;
    this.#logins.delete(id);
    const labelSelector = setSelector(owner, id);
    const all = <T extends ReplicaSet | Pod>(kind: 'pods' | 'replicasets') =>
      listAll<T>(client, { path: pathOf(namespaces, kind), labelSelector });
    const [{ objects: sets }, { objects: left }] = await Promise.all([
      all<ReplicaSet>('replicasets'),
      all<Pod>('pods'),
    ]);
    for (const { metadata } of sets) {
      const body = { propagationPolicy: 'Background', preconditions: { uid: metadata.uid } };
      await remove(client, replicaSetPath(metadata.namespace!, metadata.name), body);
    }
    // At once: the cluster removes pods that nobody owns any more, with the grace period that they were made with.
    const gracePeriodSeconds = Math.max(1, Math.ceil(graceS));
    await Promise.all(
      left.map(({ metadata }) => {
        const body = { gracePeriodSeconds, preconditions: { uid: metadata.uid } };
        return remove(client, podPath(metadata.namespace!, metadata.name), body);
      }),
    );
    if (sets.length === 0 && left.length === 0) return;
    const isOf = (object: ReplicaSet | Pod) => object.metadata.labels?.[label.set] === id;
    const giveUpMs = gracePeriodSeconds * 1000 + marginMs;
    if (onEnd) {
      // The kubelet says that a program ended a moment before its pod, and its log, are gone.
      await pods.until(() => pods.all()?.some((pod) => isOf(pod) && hasRunning(pod)) === false, giveUpMs);
      await onEnd();
    }
    const isGone = await pods.until(() => pods.all()?.some(isOf) === false, giveUpMs);
    if (!isGone || !(await replicaSets.until(() => replicaSets.all()?.some(isOf) === false, marginMs))) {
      throw new EngineError('unavailable', `Kubernetes did not end ${id} in time`);
    }
  }
}

function requireOwn(owner: string, { metadata }: ReplicaSet, path: string): void {
  if (isOwn(owner, metadata.labels)) return;
  throw new EngineError('start_failed', `Others made ${path}: it is left as it is.`);
}

/** Does nothing if there is none, or another of the same name. */
async function remove(client: KubeContext['client'], path: string, body: object): Promise<void> {
  try {
    await client.request({ method: 'DELETE', path, body });
  } catch (error) {
    if (!isStatus(error, 404, 409)) throw error;
  }
}
