// Which pod is which instance. A ReplicaSet has as many pods as its set has instances, and makes and replaces them by itself;
// each is given to an instance that has none, and keeps it from then on. No I/O.
import type { Pod, ReplicaSet } from './api/objects.ts';
import { annotation, label } from './objects/names.ts';
import { readPod } from './status/pod.ts';

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
