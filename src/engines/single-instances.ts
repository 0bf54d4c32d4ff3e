// Sets for engines that know only single instances, as Docker does: a set is what was started for it.
import type { Engine, InstanceSet, Member } from './engine.ts';

/** An instance, and what it is made of. */
export interface InstanceSpec extends Omit<InstanceSet, 'id'>, Member {}

export interface InstanceEngine extends Omit<Engine, 'keep' | 'drop' | 'sets'> {
  /** Does nothing where it was started before, even if it has ended since. */
  start(spec: InstanceSpec): Promise<void>;
}

export function runSets({ start, ...engine }: InstanceEngine): Engine {
  return {
    ...engine,
    keep: (set, members) => members.map((member) => start({ ...set, ...member })),
    // It is gone with the last of its instances.
    async drop() {},
  };
}
