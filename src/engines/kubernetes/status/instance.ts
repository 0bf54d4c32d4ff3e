// A set of one pod as an instance. Which pod that is may change: a set replaces a pod that was removed, evicted or lost with
// its node, and the instance has another address then. No I/O.
import type { EngineInstance } from '../../engine.ts';
import type { Pod, ReplicaSet } from '../api/objects.ts';
import { whoseIs } from '../objects/names.ts';
import { type PodReading, readPod } from './pod.ts';
import { replicaFailure } from './reasons.ts';

/** The pod that counts, and what it says; null: there is none, or there will be another. */
export function currentPod(
  pods: Pod[],
  firstPullMessageOf: (pod: Pod) => string | null,
): { pod: Pod; reading: PodReading } | null {
  const candidates = pods
    .map((pod) => ({ pod, reading: readPod(pod, firstPullMessageOf(pod)) }))
    .filter(({ reading }) => !reading.isLeaving && !reading.isEvicted)
    .sort((a, b) => createdAt(b.pod) - createdAt(a.pod));
  return candidates[0] ?? null;
}

const createdAt = ({ metadata }: Pod): number => Date.parse(metadata.creationTimestamp ?? '') || 0;

/** null: it is being removed. */
export function instanceOf(
  replicaSet: ReplicaSet | undefined,
  pods: Pod[],
  firstPullMessageOf: (pod: Pod) => string | null = () => null,
): EngineInstance | null {
  const whose = whoseIs((replicaSet ?? pods[0])?.metadata.labels);
  const isKept = replicaSet !== undefined && replicaSet.metadata.deletionTimestamp === undefined;
  const current = currentPod(pods, firstPullMessageOf);
  if (!whose || (!isKept && !current)) return null;
  const common = { ...whose, exitCode: null, address: null, ready: false };
  if (!current) {
    const failure = replicaFailure(replicaSet?.status?.conditions, replicaSet?.metadata.namespace ?? '');
    return { ...common, state: 'created', ...(failure && { failure }) };
  }
  const { state, address, ready, ended, failure, node } = current.reading;
  return {
    ...common,
    state,
    address,
    ready,
    exitCode: ended?.exitCode ?? null,
    ...(ended && { ended: ended.how }),
    ...(node !== null && { node }),
    ...(failure && { failure }),
  };
}
