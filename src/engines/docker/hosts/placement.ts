// Where an instance is started, and which of two copies of an instance counts. No I/O.
import type { InstanceSet, InstanceState } from '../../engine.ts';

type Revision = Pick<InstanceSet, 'project' | 'environment' | 'revision'>;

/** An instance that a host has, or is about to have. */
export interface Placed<Host> extends Revision {
  host: Host;
}

/** The host with the fewest instances of the same revision, among these the one with the fewest at all; the first of equals. */
export function chooseHost<Host>(hosts: readonly Host[], placed: readonly Placed<Host>[], of: Revision): Host | null {
  const isSame = (other: Revision) =>
    other.project === of.project && other.environment === of.environment && other.revision === of.revision;
  const ranked = hosts.map((host) => {
    const own = placed.filter((instance) => instance.host === host);
    return { host, same: own.filter(isSame).length, all: own.length };
  });
  ranked.sort((a, b) => a.same - b.same || a.all - b.all);
  return ranked[0]?.host ?? null;
}

/** An instance as one host has it. */
export interface Copy {
  /** Its host answers. */
  isCurrent: boolean;
  state: InstanceState;
  /** In seconds. */
  createdAt: number;
}

const stateRank: Record<InstanceState, number> = { running: 2, created: 1, exited: 0 };

/**
 * Two hosts have the same instance where one of them was away for long and the instance was started on another meanwhile:
 * that one is newer. Every process comes to the same answer, as each removes what does not count.
 */
export function copyThatCounts<C extends Copy>(copies: readonly C[]): C {
  const [counts] = copies.toSorted(
    (a, b) =>
      Number(b.isCurrent) - Number(a.isCurrent) || stateRank[b.state] - stateRank[a.state] || b.createdAt - a.createdAt,
  );
  return counts!;
}
