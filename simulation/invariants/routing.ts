import type { SimulatedInstance } from '../engine.ts';
import type { Facts } from '../facts.ts';
import { environmentOf } from './commit.ts';

/** A router whose process is up. */
export interface LiveRouter {
  name: string;
  targets: ReadonlySet<string>;
  /** When each instance left its table. */
  leftAt: ReadonlyMap<string, number>;
  /** When it last said that it is alive, and since when it has never been silent for longer than its lease. */
  beatAt: number;
  liveSince: number;
}

interface Stopped {
  instance: SimulatedInstance;
  facts: Facts;
  routers: readonly LiveRouter[];
  /** A router that was not heard of for this long does not count. */
  leaseMs: number;
  nowMs: number;
  /** Since when it is to be stopped; null: it is not draining. */
  drainingSince: number | null;
  /** Those that finish have this long for their requests; the least that the environment was set to lately. */
  drainMs: number;
}

/** An instance that has ended serves nobody, nor does a deleted environment. */
export function isStoppedTooEarly(stopped: Stopped): string | null {
  const { instance, facts, nowMs, drainingSince, drainMs } = stopped;
  if (instance.state !== 'running') return null;
  const { id, project, environment } = instance.spec;
  const key = environmentOf({ project_id: project, environment });
  if (!facts.environment.some((row) => `${row.project_id} ${row.name}` === key)) return null;
  const counted = stopped.routers.filter((router) => counts(router, stopped));
  const routed = counted.find(({ targets }) => targets.has(id));
  if (routed) return `${id} is stopped while ${routed.name} routes to it`;
  if (drainingSince === null) return null;
  const leftAt = Math.max(...counted.map((router) => router.leftAt.get(id) ?? Number.NEGATIVE_INFINITY));
  return nowMs - leftAt < drainMs ? `${id} had ${Math.round(nowMs - leftAt)} of ${drainMs} ms to finish` : null;
}

/** One that was silent for longer than its lease meanwhile has not been waited for. */
const counts = ({ beatAt, liveSince }: LiveRouter, { nowMs, leaseMs, drainingSince }: Stopped): boolean =>
  nowMs - beatAt < leaseMs && (drainingSince === null || liveSince <= drainingSince);
