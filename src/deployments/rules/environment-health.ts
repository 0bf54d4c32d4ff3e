// Whether an environment serves its visitors, and if not, why. No I/O.
import type { HealthState } from '../../contract/projects.ts';
import { type InstanceEndRow, type InstanceRow, settledAfterMs } from '../instance-queries.ts';

/** More than bad luck. */
const manyRestarts = 3;

type Instance = Pick<InstanceRow, 'state' | 'restarts' | 'started_at' | 'check_ok' | 'check_message' | 'is_fallback'>;

export interface Serving {
  /** The active revision, as people call it; null: there is none. */
  active: string | null;
  replicas: number;
  /** Of the revisions that get requests, without those that are draining. */
  instances: Instance[];
  /** The latest end of an instance of the active revision. */
  lastEnd: Pick<InstanceEndRow, 'ended_at' | 'message'> | null;
}

export interface EnvironmentHealth {
  state: HealthState;
  /** null: nothing is wrong. */
  reason: string | null;
}

export function healthOf(serving: Serving, nowMs: number): EnvironmentHealth {
  const { active, replicas, instances } = serving;
  if (active === null) return { state: 'idle', reason: null };
  const healthy = instances.filter(({ state }) => state === 'healthy').length;
  if (healthy === 0)
    return { state: 'down', reason: `No instance of ${active} is healthy. ${causeOf(serving, nowMs)}` };
  if (healthy < replicas) {
    const reason = `${healthy} of ${replicas} instances ${healthy === 1 ? 'is' : 'are'} healthy. ${causeOf(serving, nowMs)}`;
    return { state: 'degraded', reason };
  }
  const restarts = restartsOf(instances, nowMs);
  if (restarts < manyRestarts) return { state: 'healthy', reason: null };
  const reason = `An instance was restarted ${restarts} times in a row. ${causeOf(serving, nowMs)}`;
  return { state: 'degraded', reason };
}

/** Whether healthOf() needs to know how an instance ended. */
export const asksForEnds = (health: EnvironmentHealth): boolean =>
  health.state === 'down' || health.state === 'degraded';

function restartsOf(instances: Instance[], nowMs: number): number {
  const unsettled = instances.filter(({ started_at }) => nowMs - (started_at ?? nowMs) < settledAfterMs);
  return Math.max(0, ...unsettled.map(({ restarts }) => restarts));
}

function causeOf({ instances, lastEnd }: Serving, nowMs: number): string {
  const failing = instances.find(({ state, check_ok }) => state === 'unhealthy' && check_ok === 0);
  if (failing) {
    const isTried = failing.is_fallback === 1 && !instances.some(({ state }) => state === 'healthy');
    const tried = isTried ? ' It gets requests all the same, because there is no other.' : '';
    return `An instance does not pass its health check: ${failing.check_message}.${tried}`;
  }
  if (lastEnd && nowMs - lastEnd.ended_at < settledAfterMs) return lastEnd.message;
  return instances.some(({ state }) => state === 'starting') ? 'Others are starting.' : 'Others are missing.';
}
