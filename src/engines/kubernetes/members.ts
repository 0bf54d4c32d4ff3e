// Which pod is which instance. A ReplicaSet has as many pods as its set has instances, and creates and replaces them by
// itself; each pod is bound to an instance that has none. An instance gets another pod, and with it another address,
// when the ReplicaSet replaces one that was removed, evicted or lost with its node. No I/O.
import type { EngineInstance } from '../engine.ts';
import type { Pod, ReplicaSet } from './kube-objects.ts';
import { annotation, label, setIdentityOf } from './object-names.ts';
import { readPod, replicaFailure } from './pod-status.ts';

/** The instances that a set should have, oldest first. */
export function membersOf({ metadata }: ReplicaSet): string[] {
  const text = metadata.annotations?.[annotation.instances];
  // Of a version that had a ReplicaSet for each instance.
  if (text === undefined) return [metadata.labels?.[label.set] ?? ''];
  return text.split(',').filter((id) => id !== '');
}

export const membersText = (members: readonly string[]): string => members.join(',');

/** The instance that it was given to. */
export const memberOf = ({ metadata }: Pod): string | undefined => metadata.annotations?.[annotation.instance];

const isLive = (pod: Pod): boolean => {
  const { isLeaving, isEvicted } = readPod(pod);
  return !isLeaving && !isEvicted;
};

const byAge = (a: Pod, b: Pod): number =>
  (a.metadata.creationTimestamp ?? '').localeCompare(b.metadata.creationTimestamp ?? '') ||
  a.metadata.name.localeCompare(b.metadata.name);

/** The pods that were given to the instances, by their ids. Of two that were given to the same one, the older counts. */
export function podsOf(members: readonly string[], pods: readonly Pod[]): Map<string, Pod> {
  const given = new Map<string, Pod>();
  for (const pod of pods.filter(isLive).sort(byAge)) {
    const member = memberOf(pod);
    if (member !== undefined && members.includes(member) && !given.has(member)) given.set(member, pod);
  }
  return given;
}

/** Which of the pods that have no instance should be given to which that has no pod. */
export function podsToGive(members: readonly string[], pods: readonly Pod[]): Map<string, Pod> {
  const given = podsOf(members, pods);
  const taken = new Set(given.values());
  const free = pods.filter((pod) => isLive(pod) && !taken.has(pod)).sort(byAge);
  const waiting = members.filter((member) => !given.has(member));
  return new Map(waiting.flatMap((member, i) => (free[i] ? [[member, free[i]] as const] : [])));
}

export interface SetInstance {
  instance: EngineInstance;
  replicaSet: ReplicaSet;
  /** Where it runs; undefined: it has none yet, or not any more. */
  pod: Pod | undefined;
}

/** None of a set that is being removed. */
export function instancesOf(
  replicaSet: ReplicaSet | undefined,
  pods: readonly Pod[],
  firstPullMessageOf: (pod: Pod) => string | null = () => null,
): SetInstance[] {
  const identity = setIdentityOf(replicaSet?.metadata.labels);
  if (!replicaSet || !identity || replicaSet.metadata.deletionTimestamp !== undefined) return [];
  const members = membersOf(replicaSet);
  const given = podsOf(members, pods);
  return members.map((id) => {
    const pod = given.get(id);
    const common = { ...identity, id, exitCode: null, address: null, ready: false };
    const state = pod ? stateOf(pod, firstPullMessageOf(pod)) : withoutPod(replicaSet);
    return { instance: { ...common, ...state }, replicaSet, pod };
  });
}

type InstanceStatus = Pick<EngineInstance, 'state'> & Partial<EngineInstance>;

function withoutPod({ status, metadata }: ReplicaSet): InstanceStatus {
  const failure = replicaFailure(status?.conditions, metadata.namespace ?? '');
  return { state: 'created', ...(failure && { failure }) };
}

function stateOf(pod: Pod, firstPullMessage: string | null): InstanceStatus {
  const { state, address, ready, ended, failure, node } = readPod(pod, firstPullMessage);
  return {
    state,
    address,
    ready,
    exitCode: ended?.exitCode ?? null,
    ...(ended && { ended: ended.how }),
    ...(node !== null && { node }),
    ...(failure && { failure }),
  };
}
