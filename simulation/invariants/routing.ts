import type { SimulatedInstance } from '../engine.ts';
import type { Facts } from '../facts.ts';
import { environmentOf } from './commit.ts';

interface Router {
  name: string;
  targets: ReadonlySet<string>;
  /** When it last said that it is alive. */
  beatAt: number;
}

interface Stopped {
  instance: SimulatedInstance;
  facts: Facts;
  routers: readonly Router[];
  /** A router that was not heard of for this long does not count. */
  leaseMs: number;
  nowMs: number;
}

/** An instance that has ended serves nobody, nor does a deleted environment. */
export function isStoppedTooEarly({ instance, facts, routers, leaseMs, nowMs }: Stopped): string | null {
  if (instance.state !== 'running') return null;
  const { id, project, environment } = instance.spec;
  const key = environmentOf({ project_id: project, environment });
  if (!facts.environment.some((row) => `${row.project_id} ${row.name}` === key)) return null;
  const routed = routers.find(({ targets, beatAt }) => targets.has(id) && nowMs - beatAt < leaseMs);
  return routed ? `${id} is stopped while ${routed.name} routes to it` : null;
}
