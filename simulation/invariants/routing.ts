import type { SimulatedInstance } from '../engine.ts';
import type { Facts } from '../facts.ts';
import { environmentOf } from './commit.ts';

interface Router {
  name: string;
  targets: ReadonlySet<string>;
  /** Since when no fault has touched it. */
  calmSince: number;
}

interface Stopped {
  instance: SimulatedInstance;
  facts: Facts;
  routers: readonly Router[];
  nowMs: number;
}

/** How long a router without faults may take to follow a change: two polls. */
const followsWithinMs = 2000;

/**
 * Strict: as long as the router lives. Otherwise only routers that had no fault for long enough to have followed: the
 * others are waited for by time alone. An instance that has ended serves nobody, nor does a deleted environment.
 */
export function isStoppedTooEarly({ instance, facts, routers, nowMs }: Stopped, strict: boolean): string | null {
  if (instance.state !== 'running') return null;
  const { id, project, environment } = instance.spec;
  const key = environmentOf({ project_id: project, environment });
  if (!facts.environment.some((row) => `${row.project_id} ${row.name}` === key)) return null;
  const routed = routers.find(
    ({ targets, calmSince }) => targets.has(id) && (strict || nowMs - calmSince > followsWithinMs),
  );
  return routed ? `${id} is stopped while ${routed.name} routes to it` : null;
}

/** An instance that served until then is stopped only after the time that routers get, whoever routes to it. */
export function isDrainedTooBriefly(
  { spec, state }: SimulatedInstance,
  drainingSince: number,
  nowMs: number,
): string | null {
  const ms = nowMs - drainingSince;
  return state === 'running' && ms < followsWithinMs ? `${spec.id} is stopped after ${Math.round(ms)} ms` : null;
}
