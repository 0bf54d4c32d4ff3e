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
  /** How long a router without faults may take to follow a change. */
  settleMs: number;
  nowMs: number;
}

/**
 * Strict: as long as the router lives. Otherwise only routers that had no fault for long enough to have followed: the
 * others are waited for by time alone. An instance that has ended serves nobody, nor does a deleted environment.
 */
export function isStoppedTooEarly(stopped: Stopped, strict: boolean): string | null {
  const { instance, facts, routers, settleMs, nowMs } = stopped;
  if (instance.state !== 'running') return null;
  const { id, project, environment } = instance.spec;
  const key = environmentOf({ project_id: project, environment });
  if (!facts.environment.some((row) => `${row.project_id} ${row.name}` === key)) return null;
  const routed = routers.find(({ targets, calmSince }) => targets.has(id) && (strict || nowMs - calmSince > settleMs));
  return routed ? `${id} is stopped while ${routed.name} routes to it` : null;
}

/** An instance that served until then is stopped only after the time that routers get, whoever routes to it. */
export function isDrainedTooBriefly({ spec, state }: SimulatedInstance, ms: number, settleMs: number): string | null {
  return state === 'running' && ms < settleMs ? `${spec.id} is stopped after ${Math.round(ms)} ms` : null;
}
