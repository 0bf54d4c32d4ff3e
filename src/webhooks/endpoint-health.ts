// How an endpoint is doing, judged by the outcomes of its deliveries.
//
//   well ──failure──▶ failing ──too many in a row──▶ open: only a probe now and then ──five days──▶ disabled
//     ◀──────────success─────────◀──────────success──────────┘             (410 disables at once)
import { jittered } from './delivery-retry.ts';

export interface Health {
  /** In a row, since the last success. */
  failures: number;
  failingSince: number | null;
  /** While the breaker is open: when one delivery may try again. */
  probeAt: number | null;
}

export const opensAfter = 10;
export const disabledAfterMs = 5 * 24 * 3600_000;
const firstProbeMs = 5000;
const longestProbeMs = 10 * 60_000;
/** No probe is further ahead. */
export const longestProbeWaitMs = jittered(longestProbeMs, 1);

export const well: Health = { failures: 0, failingSince: null, probeAt: null };

export interface Round {
  succeeded: number;
  failed: number;
}

/** The health after a batch of outcomes. One success is enough: the receiver is up. */
export function healthAfter(before: Health, { succeeded, failed }: Round, nowMs: number, random: number): Health {
  if (succeeded > 0) return well;
  if (failed === 0) return before;
  const failingSince = before.failingSince ?? nowMs;
  if (before.failures + failed < opensAfter) {
    return { failures: before.failures + failed, failingSince, probeAt: null };
  }
  // Deliveries in flight when the breaker opened fail late and say nothing new; only a failed probe does.
  if (before.probeAt !== null && nowMs < before.probeAt) return before;
  const failures = before.probeAt === null ? opensAfter : before.failures + 1;
  const waitMs = Math.min(longestProbeMs, firstProbeMs * 2 ** Math.min(failures - opensAfter, 20));
  return { failures, failingSince, probeAt: nowMs + jittered(waitMs, random) };
}

export const hasFailedTooLong = ({ failingSince }: Health, nowMs: number): boolean =>
  failingSince !== null && nowMs - failingSince >= disabledAfterMs;

const maxPerEndpoint = 32;
const maxWhileFailing = 2;
const maxWhileSlow = 8;
const slowAfterMs = 2000;

export interface Load {
  inFlight: number;
  /** When the oldest of these was sent. */
  oldestAt: number | null;
  /** Claimed, to be sent as soon as there is room. */
  waiting: number;
}

const idle: Load = { inFlight: 0, oldestAt: null, waiting: 0 };

/** How many more deliveries an endpoint may have in flight. One that hangs or fails gets few, so others get more. */
export function roomFor(
  { failures, probeAt }: Pick<Health, 'failures' | 'probeAt'>,
  strict: boolean,
  { inFlight, oldestAt }: Omit<Load, 'waiting'> = idle,
  nowMs: number,
): number {
  if (failures >= opensAfter) return inFlight === 0 && (probeAt ?? 0) <= nowMs ? 1 : 0;
  if (strict) return inFlight === 0 ? 1 : 0;
  if (failures > 0) return Math.max(0, maxWhileFailing - inFlight);
  const slow = oldestAt !== null && nowMs - oldestAt > slowAfterMs;
  return Math.max(0, (slow ? maxWhileSlow : maxPerEndpoint) - inFlight);
}

const maxAhead = 32;
const fastWithinMs = 200;

/**
 * How many more to claim: as many as there is room for, and, for an endpoint that answers fast, some ahead, which can
 * be sent as soon as there is room again without waiting for the database.
 */
export function wantFor(
  health: Pick<Health, 'failures' | 'probeAt'>,
  strict: boolean,
  load: Load = idle,
  nowMs: number,
): number {
  const fast = health.failures === 0 && !strict && nowMs - (load.oldestAt ?? nowMs) < fastWithinMs;
  return Math.max(0, roomFor(health, strict, load, nowMs) + (fast ? maxAhead : 0) - load.waiting);
}

/** How many more to claim for an endpoint whose health is not known yet, for each state it may be in. */
interface Wants {
  well: number;
  failing: number;
  /** The breaker is open, and a probe is due. */
  probing: number;
}

export const wantsFor = (load: Load | undefined, nowMs: number): Wants => ({
  well: wantFor(well, false, load, nowMs),
  failing: wantFor({ failures: 1, probeAt: null }, false, load, nowMs),
  probing: wantFor({ failures: opensAfter, probeAt: null }, false, load, nowMs),
});
