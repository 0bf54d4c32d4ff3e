// How an endpoint is doing, from how its deliveries went.
//
//   well ──failure──▶ failing ──too many in a row──▶ open: only a probe now and then ──five days──▶ disabled
//     ◀──────────success─────────◀──────────success──────────┘             (410 disables at once)
import { jittered } from '../sending/retry.ts';

export interface Health {
  /** One after the other, since the last success. */
  failures: number;
  failingSince: number | null;
  /** While the breaker is open: when one delivery may try again. */
  probeAt: number | null;
}

export const opensAfter = 10;
export const disabledAfterMs = 5 * 24 * 3600_000;
const firstProbeMs = 5000;
const longestProbeMs = 10 * 60_000;

export const well: Health = { failures: 0, failingSince: null, probeAt: null };

export interface Round {
  succeeded: number;
  failed: number;
}

/** What some outcomes that became known together do. One success says that the receiver lives. */
export function healthAfter(before: Health, { succeeded, failed }: Round, nowMs: number, random: number): Health {
  if (succeeded > 0) return well;
  if (failed === 0) return before;
  const failingSince = before.failingSince ?? nowMs;
  if (before.failures + failed < opensAfter) {
    return { failures: before.failures + failed, failingSince, probeAt: null };
  }
  // What was under way when the breaker opened fails later than the others and says nothing new; each probe does.
  if (before.probeAt !== null && nowMs < before.probeAt) return before;
  const failures = before.probeAt === null ? opensAfter : before.failures + 1;
  const waitMs = Math.min(longestProbeMs, firstProbeMs * 2 ** Math.min(failures - opensAfter, 20));
  return { failures, failingSince, probeAt: nowMs + jittered(waitMs, random) };
}

export const hasFailedTooLong = ({ failingSince }: Health, nowMs: number): boolean =>
  failingSince !== null && nowMs - failingSince >= disabledAfterMs;

export const maxPerEndpoint = 32;
const maxWhileFailing = 2;
const maxWhileSlow = 8;
const slowAfterMs = 2000;

export interface Load {
  inFlight: number;
  /** When the oldest of them was sent. */
  oldestAt: number | null;
  /** Taken already, to be sent as soon as there is room. */
  waiting: number;
}

const idle: Load = { inFlight: 0, oldestAt: null, waiting: 0 };

/** How many more deliveries an endpoint may have under way. One that hangs or fails gets little, so others get more. */
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
 * How many more to take: those it has room for, and, of one that answers fast, some to send the moment there is room
 * again, for then nobody has to wait for the database.
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

/** The same, where how the endpoint is doing is not known yet: for each way it may be doing. */
export interface Wants {
  well: number;
  failing: number;
  /** The breaker is open, and it is time to probe. */
  probing: number;
}

export const wantsFor = (load: Load | undefined, nowMs: number): Wants => ({
  well: wantFor(well, false, load, nowMs),
  failing: wantFor({ failures: 1, probeAt: null }, false, load, nowMs),
  probing: wantFor({ failures: opensAfter, probeAt: null }, false, load, nowMs),
});
