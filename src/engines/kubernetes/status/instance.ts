// The instances of a set. Which pod an instance has may change: the set replaces a pod that was removed, evicted or lost with
// its node, and the instance has another address then. No I/O.
import type { EngineInstance } from '../../engine.ts';
import type { Pod, ReplicaSet } from '../api/objects.ts';
import { membersOf, podsOf } from '../members.ts';
import { whoseIs } from '../objects/names.ts';
import { readPod } from './pod.ts';
import { replicaFailure } from './reasons.ts';

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
  const whose = whoseIs(replicaSet?.metadata.labels);
  if (!replicaSet || !whose || replicaSet.metadata.deletionTimestamp !== undefined) return [];
  const members = membersOf(replicaSet);
  const given = podsOf(members, pods);
  return members.map((id) => {
    const pod = given.get(id);
    const common = { ...whose, id, exitCode: null, address: null, ready: false };
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
