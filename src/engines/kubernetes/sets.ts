// Keeps and drops sets. Each is a ReplicaSet with what it owns: a Secret with its variables and, where its registry wants
// one, a Secret with the login. The ReplicaSet comes first and with no pods, so that it can own the others; its instances are
// added when they are there. A crash in between leaves what the next keep() completes, or what drop() removes. Which
// instances a set should have is written on its ReplicaSet, together with their number.
import { EngineError, type InstanceSet } from '../engine.ts';
import type { Registry } from '../registry/registry.ts';
import { applyObject, fieldManager, findObject, isStatus, type KubeClient } from './kube-client.ts';
import type { Pod, ReplicaSet } from './kube-objects.ts';
import { type Cache, listAll } from './kube-watch.ts';
import {
  disruptionBudget,
  type PodSecurity,
  pullSecret,
  replicaSetOf,
  securityFor,
  variablesSecret,
} from './manifests.ts';
import { memberOf, membersOf, membersText, type SetInstance } from './members.ts';
import {
  annotation,
  deletionCost,
  isOwn,
  label,
  type Namespaces,
  pathOf,
  podPath,
  pullSecretName,
  replicaSetPath,
  requireId,
  setName,
  setSelector,
  variablesName,
} from './object-names.ts';
import { hasRunning } from './pod-status.ts';
import type { ProjectNamespaces } from './project-namespaces.ts';

const seenWithinMs = 5_000;
/** Added to the grace period of a stop: the kubelet tells the API a little later that a pod is gone. */
const stopMarginMs = 30_000;
/** Others that change the same ReplicaSet: its controller, and processes of ours that take over. */
const attempts = 20;
const mergePatch = 'application/merge-patch+json';

interface SetsParts {
  client: KubeClient;
  /** The installation and region that own the objects. */
  owner: string;
  namespaces: Namespaces;
  registry: Registry;
  pods: Cache<Pod>;
  replicaSets: Cache<ReplicaSet>;
}

export class Sets {
  readonly #parts: SetsParts;
  readonly #projects: ProjectNamespaces;
  /** The login that each set's Secret was last written with. */
  readonly #logins = new Map<string, string>();
  /** By the path of a ReplicaSet: the last change of its instances. They run one after another. */
  readonly #changes = new Map<string, Promise<unknown>>();

  constructor(parts: SetsParts, projects: ProjectNamespaces) {
    this.#parts = parts;
    this.#projects = projects;
  }

  /** The set has these instances then, beside those that it had: the cluster makes their pods. */
  async keep(set: InstanceSet, members: readonly string[]): Promise<void> {
    requireId(set.id);
    for (const member of members) requireId(member);
    const namespace = await this.#projects.ensure(set.project);
    try {
      await this.#keep(set, members, namespace);
    } catch (error) {
      if (isStatus(error, 404)) this.#projects.forget(namespace);
      throw error;
    }
  }

  async #keep(set: InstanceSet, members: readonly string[], namespace: string): Promise<void> {
    const { client, owner } = this.#parts;
    const name = setName(owner, set);
    const path = replicaSetPath(namespace, name);
    const known = await findObject<ReplicaSet>(client, path);
    if (known) requireOwn(owner, known, path);
    const replicaSet = known ?? (await this.#create(set, path, namespace));
    const owning = { name, uid: replicaSet.metadata.uid!, namespace };
    if ((replicaSet.spec?.replicas ?? 0) === 0 && members.length > 0) {
      // The same again where a crash left it there: the engine need not be allowed to read Secrets.
      const at = `/api/v1/namespaces/${namespace}/secrets/${variablesName(owner, set)}`;
      await applyObject(client, at, variablesSecret(owner, set, owning));
      await this.#keepBudget(set, owning);
    }
    await this.#keepLogin(set, owning);
    await this.#changeMembers(path, (before) => [...new Set([...before, ...members])]);
    await this.#untilSeen(namespace, name, (seen) => members.every((member) => seen.includes(member)));
  }

  /** A list that is asked for next is as new as what was done. */
  async #untilSeen(namespace: string, name: string, isSo: (members: string[]) => boolean): Promise<void> {
    const { replicaSets } = this.#parts;
    const isSeen = () => {
      const seen = replicaSets.find(namespace, name);
      return isSo(seen ? membersOf(seen) : []);
    };
    await replicaSets.until(isSeen, seenWithinMs);
  }

  /** Which instances the set has, and how many: one change, so that no process sees the one without the other. */
  async #changeMembers(path: string, change: (before: string[]) => string[]): Promise<void> {
    const changed = (this.#changes.get(path) ?? Promise.resolve())
      .catch(() => {})
      .then(() => this.#tryToChange(path, change))
      .finally(() => {
        if (this.#changes.get(path) === changed) this.#changes.delete(path);
      });
    this.#changes.set(path, changed);
    return changed;
  }

  async #tryToChange(path: string, change: (before: string[]) => string[]): Promise<void> {
    const { client, owner } = this.#parts;
    for (let attempt = 1; ; attempt++) {
      const replicaSet = await client.request<ReplicaSet>({ path });
      requireOwn(owner, replicaSet, path);
      const before = membersOf(replicaSet);
      const members = change(before);
      if (membersText(members) === membersText(before) && replicaSet.spec?.replicas === members.length) return;
      const { resourceVersion } = replicaSet.metadata;
      const annotations = { [annotation.instances]: membersText(members) };
      const body = { metadata: { resourceVersion, annotations }, spec: { replicas: members.length } };
      try {
        await client.request({ method: 'PATCH', path, query: { fieldManager }, contentType: mergePatch, body });
        return;
      } catch (error) {
        if (!isStatus(error, 409) || attempt === attempts) throw error;
      }
    }
  }

  async #create(set: InstanceSet, path: string, namespace: string): Promise<ReplicaSet> {
    const { client, owner } = this.#parts;
    const security = await this.#securityOf(set);
    const made = await applyObject<ReplicaSet>(client, path, replicaSetOf(set, { owner, namespace, security }));
    requireOwn(owner, made, path);
    return made;
  }

  /** What cannot be asked now gets the rights that every image runs with. */
  async #securityOf({ image, digest, login }: InstanceSet): Promise<PodSecurity> {
    const config = await this.#parts.registry.config(image, digest, login ?? null).catch(() => null);
    return config === null ? 'baseline' : securityFor(config.user);
  }

  /** An account from before there were budgets may not make any: what it runs is drained as it was then. */
  async #keepBudget(set: InstanceSet, owning: { name: string; uid: string; namespace: string }): Promise<void> {
    const { client, owner } = this.#parts;
    const path = `/apis/policy/v1/namespaces/${owning.namespace}/poddisruptionbudgets/${owning.name}`;
    try {
      await applyObject(client, path, disruptionBudget(owner, set, owning));
    } catch (error) {
      if (!isStatus(error, 403)) throw error;
    }
  }

  /** Written again whenever it is another than last time: many registries issue passwords that expire within hours. */
  async #keepLogin(set: InstanceSet, owning: { name: string; uid: string; namespace: string }): Promise<void> {
    const { client, owner } = this.#parts;
    const { login } = set;
    const text = JSON.stringify(login);
    if (!login || this.#logins.get(set.id) === text) return;
    const path = `/api/v1/namespaces/${owning.namespace}/secrets/${pullSecretName(owner, set)}`;
    await applyObject(client, path, pullSecret(owner, set, login, owning));
    this.#logins.set(set.id, text);
  }

  /**
   * Ends one instance of a set; the others stay. Waits until its pod is gone, `graceS` and a margin at most; `onEnd` runs when
   * its program has ended.
   */
  async stop({ replicaSet, instance, pod }: SetInstance, graceS: number, onEnd?: () => Promise<void>): Promise<void> {
    const { namespace, name } = replicaSet.metadata;
    const { id } = instance;
    if (pod) await this.#retire(pod);
    const path = replicaSetPath(namespace!, name);
    await this.#changeMembers(path, (before) => before.filter((member) => member !== id)).catch((error) => {
      if (!isStatus(error, 404)) throw error;
    });
    await this.#untilSeen(namespace!, name, (members) => !members.includes(id));
    if (!pod) return;
    await this.#removePod(pod, graceS);
    await this.#untilGone(id, (other) => other.metadata.uid === pod.metadata.uid, graceS, onEnd);
  }

  /** Of one that a set no longer has: waits until its pod is gone. */
  async ended(id: string, graceS: number, onEnd?: () => Promise<void>): Promise<void> {
    const { pods } = this.#parts;
    const isOne = (pod: Pod) => memberOf(pod) === id && pod.metadata.deletionTimestamp !== undefined;
    if (pods.all()?.some(isOne)) await this.#untilGone(id, isOne, graceS, onEnd);
  }

  /** The controller has to know it before it chooses: our own watch has seen it then, and so, most likely, has its. */
  async #retire({ metadata: { namespace, name } }: Pod): Promise<void> {
    const { client, pods } = this.#parts;
    const body = { metadata: { annotations: { [deletionCost]: '-1000' } } };
    const path = podPath(namespace!, name);
    try {
      await client.request({ method: 'PATCH', path, query: { fieldManager }, contentType: mergePatch, body });
    } catch (error) {
      if (isStatus(error, 404)) return;
      throw error;
    }
    const isSeen = () => {
      const seen = pods.find(namespace!, name);
      return seen === undefined || seen.metadata.annotations?.[deletionCost] !== undefined;
    };
    await pods.until(isSeen, seenWithinMs);
  }

  /** Before its controller does, which would give it the grace period that it was made with. */
  async #removePod({ metadata }: Pod, graceS: number): Promise<void> {
    const body = { gracePeriodSeconds: graceSeconds(graceS), preconditions: { uid: metadata.uid } };
    await remove(this.#parts.client, podPath(metadata.namespace!, metadata.name), body);
  }

  async #untilGone(
    what: string,
    isOne: (pod: Pod) => boolean,
    graceS: number,
    onEnd?: () => Promise<void>,
  ): Promise<void> {
    const { pods } = this.#parts;
    const giveUpMs = graceSeconds(graceS) * 1000 + stopMarginMs;
    if (onEnd) {
      // The kubelet says that a program ended a moment before its pod, and its log, are gone.
      await pods.until(() => pods.all()?.some((pod) => isOne(pod) && hasRunning(pod)) === false, giveUpMs);
      await onEnd();
    }
    if (await pods.until(() => pods.all()?.some(isOne) === false, giveUpMs)) return;
    throw new EngineError('unavailable', `Kubernetes did not end ${what} in time`);
  }

  /** With all that is left of it, at once. */
  async drop(id: string): Promise<void> {
    requireId(id);
    const { client, owner, namespaces, replicaSets } = this.#parts;
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
    await Promise.all(left.map((pod) => this.#removePod(pod, 0)));
    if (sets.length === 0 && left.length === 0) return;
    const isOf = (object: ReplicaSet | Pod) => object.metadata.labels?.[label.set] === id;
    await this.#untilGone(id, isOf, 0);
    if (!(await replicaSets.until(() => replicaSets.all()?.some(isOf) === false, stopMarginMs))) {
      throw new EngineError('unavailable', `Kubernetes did not remove ${id} in time`);
    }
  }
}

const graceSeconds = (graceS: number): number => Math.max(1, Math.ceil(graceS));

function requireOwn(owner: string, { metadata }: ReplicaSet, path: string): void {
  if (isOwn(owner, metadata.labels)) return;
  throw new EngineError('start_failed', `Others made ${path}: it is left as it is.`);
}

/** Does nothing if there is none, or another of the same name. */
async function remove(client: KubeClient, path: string, body: object): Promise<void> {
  try {
    await client.request({ method: 'DELETE', path, body });
  } catch (error) {
    if (!isStatus(error, 404, 409)) throw error;
  }
}
