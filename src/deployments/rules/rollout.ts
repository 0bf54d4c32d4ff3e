// The life of a deployment, without I/O.
//
//   queued → preparing → starting → canary → promoting → succeeded
//                        starting → promoting              not a canary, or nothing is live yet
//   queued → canceled
//   preparing | starting → failed | aborting
//   canary | promoting → aborting → failed | canceled      abort, analysis, alert, deadline
//
// decide() is called again and again with the latest observation, and gives at most one step. It is total: every pair of
// a state and an observation has an answer, and null ("wait") is one. Every state but the final ones has a deadline.
import type { CanaryPhase, DeploymentState, FailureCode, RollbackCause, Strategy } from '../../contract/deployments.ts';
import type { CanaryPolicy } from '../../contract/environments.ts';
import { type Comparison, judge } from './analysis.ts';

export interface Rollout {
  state: DeploymentState;
  strategy: Strategy;
  /** Whether another revision serves already. */
  hasPrevious: boolean;
  /** The shares a canary goes through, rising. */
  percents: readonly number[];
  /** Which of them it is at, from 1; 0 before. */
  step: number;
  phase: CanaryPhase | null;
  stepUntil: number | null;
  deadlineAt: number;
  cause: RollbackCause | null;
}

export interface Failure {
  code: FailureCode;
  message: string;
}

export interface Observed {
  regionAvailable: boolean;
  /** What became of pulling the image; null: not known yet. */
  image: { digest: string } | Failure | null;
  /** Instances of the new revision: how many should run in this state, are healthy, exist at all; its share of requests. */
  fresh: { wanted: number; healthy: number; existing: number; percent: number };
  previous: { wanted: number; healthy: number };
  /** The new instances do not stay up, or answer their health check badly. */
  trouble: Failure | null;
  /** Since the canary's step began; nothing in other states. */
  traffic: Comparison;
  /** An alert that fired since the canary began and ends it; measured: by the router, like the analysis. */
  alert: { message: string; measured: boolean } | null;
}

export interface Policy {
  canary: CanaryPolicy;
  autoRollback: boolean;
  startTimeoutS: number;
}

export interface Step {
  to: DeploymentState;
  message: string;
  deadlineAt: number | null;
  digest?: string;
  canary?: { phase: CanaryPhase; step: number; until: number | null };
  failure?: Failure;
  cause?: RollbackCause;
}

const minuteMs = 60_000;
export const queuedForMs = 15 * minuteMs;
const preparingForMs = 15 * minuteMs;
const abortingForMs = 5 * minuteMs;
const promotingExtraMs = 5 * minuteMs;
/** How long a step waits for enough requests after its bake. */
const bakeExtraMs = 30 * minuteMs;

export function decide(rollout: Rollout, seen: Observed, policy: Policy, nowMs: number): Step | null {
  switch (rollout.state) {
    case 'queued':
      return whenQueued(rollout, seen, nowMs);
    case 'preparing':
      return whenPreparing(rollout, seen, policy, nowMs);
    case 'starting':
      return whenStarting(rollout, seen, policy, nowMs);
    case 'canary':
      return whenCanary(rollout, seen, policy, nowMs);
    case 'promoting':
      return whenPromoting(rollout, seen, nowMs);
    case 'aborting':
      return whenAborting(rollout, seen, nowMs);
    case 'succeeded':
    case 'failed':
    case 'canceled':
      return null;
  }
}

/** What `abort` does, `by` the token of this name; null: there is nothing left to abort. */
export function abort({ state }: Rollout, by: string, nowMs: number): Step | null {
  const aborted: Failure = { code: 'aborted', message: `Aborted by ${by}.` };
  switch (state) {
    case 'queued':
      return end('canceled', aborted);
    case 'preparing':
    case 'starting':
    case 'canary':
    case 'promoting':
      return undo('abort', aborted, nowMs);
    case 'aborting':
    case 'succeeded':
    case 'failed':
    case 'canceled':
      return null;
  }
}

function whenQueued(rollout: Rollout, seen: Observed, nowMs: number): Step | null {
  if (seen.regionAvailable) {
    return { to: 'preparing', message: 'Pulling the image.', deadlineAt: nowMs + preparingForMs };
  }
  return nowMs >= rollout.deadlineAt ? end('failed', lost) : null;
}

function whenPreparing(rollout: Rollout, seen: Observed, policy: Policy, nowMs: number): Step | null {
  if (seen.image && 'code' in seen.image) return end('failed', seen.image);
  if (seen.image) {
    return {
      to: 'starting',
      message: `The image is ${seen.image.digest}. Starting instances.`,
      digest: seen.image.digest,
      deadlineAt: nowMs + policy.startTimeoutS * 1000,
    };
  }
  return nowMs >= rollout.deadlineAt ? end('failed', late(seen, 'The image was not ready in time.')) : null;
}

function whenStarting(rollout: Rollout, seen: Observed, policy: Policy, nowMs: number): Step | null {
  if (seen.fresh.healthy >= seen.fresh.wanted && seen.fresh.wanted > 0) {
    return rollout.strategy === 'canary' && rollout.hasPrevious
      ? beginStep(rollout, 1, policy, nowMs)
      : promote(policy, nowMs, 'Instances are healthy.');
  }
  if (seen.trouble?.code === 'crashed') return end('failed', seen.trouble);
  if (nowMs < rollout.deadlineAt) return null;
  if (!seen.regionAvailable) return end('failed', lost);
  const timedOut: Failure = {
    code: 'start_timeout',
    message: `No healthy instance within ${policy.startTimeoutS} s.`,
  };
  return end('failed', seen.trouble ?? timedOut);
}

function whenCanary(rollout: Rollout, seen: Observed, policy: Policy, nowMs: number): Step | null {
  if (seen.trouble?.code === 'crashed') return undo('analysis', seen.trouble, nowMs);
  const isLate = nowMs >= rollout.deadlineAt;
  const alarmed = alertOf(rollout, seen, policy);
  if (rollout.phase !== 'baking') {
    if (alarmed) return undo('alert', alarmed, nowMs);
    const waited: Failure = { code: 'approval_timeout', message: 'It was not promoted or resumed in time.' };
    return isLate ? undo('deadline', waited, nowMs) : null;
  }
  const verdict = judge(seen.traffic, policy.canary);
  if (verdict.kind === 'bad') {
    const failed: Failure = { code: 'analysis_failed', message: `The canary’s ${verdict.reason}.` };
    return policy.autoRollback
      ? undo('analysis', failed, nowMs)
      : hold(rollout, policy, nowMs, `${failed.message} Paused.`);
  }
  if (alarmed) return undo('alert', alarmed, nowMs);
  if (rollout.stepUntil !== null && nowMs >= rollout.stepUntil && verdict.kind === 'good') {
    if (policy.canary.advance === 'manual') {
      return {
        to: 'canary',
        message: `Waiting for promote at ${percentAt(rollout)} %.`,
        deadlineAt: nowMs + policy.canary.approval_timeout_s * 1000,
        canary: { phase: 'awaiting_approval', step: rollout.step, until: null },
      };
    }
    return advance(rollout, policy, nowMs);
  }
  return isLate ? undo('deadline', late(seen, 'Too few requests reached the canary to judge it.'), nowMs) : null;
}

/**
 * An alert about what the router measured of the canary rests on the same evidence as the analysis. So it needs as many
 * requests, and it leaves a canary alone that the analysis has paused for people to decide on (`auto_rollback` off).
 */
function alertOf(rollout: Rollout, { alert, traffic }: Observed, policy: Policy): Failure | null {
  if (!alert) return null;
  if (alert.measured) {
    if (traffic.canary.requests < policy.canary.min_requests) return null;
    if (rollout.phase === 'paused' && !policy.autoRollback) return null;
  }
  return { code: 'alert_fired', message: alert.message };
}

function whenPromoting(rollout: Rollout, seen: Observed, nowMs: number): Step | null {
  if (seen.fresh.healthy >= seen.fresh.wanted && seen.previous.wanted === 0 && seen.fresh.percent === 100) {
    return { to: 'succeeded', message: 'It serves all traffic.', deadlineAt: null };
  }
  if (seen.trouble?.code === 'crashed') return undo('analysis', seen.trouble, nowMs);
  return nowMs >= rollout.deadlineAt
    ? undo('deadline', late(seen, 'Instances were not healthy in time.'), nowMs)
    : null;
}

function whenAborting(rollout: Rollout, seen: Observed, nowMs: number): Step | null {
  const restored = !rollout.hasPrevious || seen.previous.healthy >= seen.previous.wanted;
  if ((restored && seen.fresh.existing === 0) || nowMs >= rollout.deadlineAt) {
    return {
      to: rollout.cause === 'abort' ? 'canceled' : 'failed',
      message: rollout.hasPrevious ? 'The previous revision serves all traffic.' : 'All its instances are stopped.',
      deadlineAt: null,
    };
  }
  return null;
}

/** To the next share, or to all traffic after the last one. Also what `promote` does. */
export function advance(rollout: Rollout, policy: Policy, nowMs: number): Step {
  return rollout.step < rollout.percents.length
    ? beginStep(rollout, rollout.step + 1, policy, nowMs)
    : promote(policy, nowMs, 'The canary is good.');
}

/** Begins the given step, or restarts it. Also what `resume` does. */
export function beginStep({ percents }: Rollout, step: number, policy: Policy, nowMs: number): Step {
  const until = nowMs + policy.canary.bake_s * 1000;
  return {
    to: 'canary',
    message: `${percents[step - 1]} % of requests go to the new revision.`,
    deadlineAt: until + Math.max(bakeExtraMs, 10 * policy.canary.bake_s * 1000),
    canary: { phase: 'baking', step, until },
  };
}

/** Keeps the share as it is until a person resumes, promotes or aborts. Also what `pause` does. */
export function hold(rollout: Rollout, policy: Policy, nowMs: number, message: string): Step {
  return {
    to: 'canary',
    message,
    deadlineAt: nowMs + policy.canary.approval_timeout_s * 1000,
    canary: { phase: 'paused', step: rollout.step, until: null },
  };
}

function promote(policy: Policy, nowMs: number, message: string): Step {
  return {
    to: 'promoting',
    message: `${message} Moving all traffic.`,
    deadlineAt: nowMs + policy.startTimeoutS * 1000 + promotingExtraMs,
  };
}

function undo(cause: RollbackCause, failure: Failure, nowMs: number): Step {
  return { to: 'aborting', message: failure.message, deadlineAt: nowMs + abortingForMs, failure, cause };
}

const end = (to: 'failed' | 'canceled', failure: Failure): Step => ({
  to,
  message: failure.message,
  deadlineAt: null,
  failure,
});

const lost: Failure = { code: 'region_lost', message: 'The region did not answer in time.' };

const late = (seen: Observed, message: string): Failure =>
  seen.regionAvailable ? { code: 'deadline_exceeded', message } : lost;

const percentAt = ({ percents, step }: Rollout): number => percents[step - 1] ?? 0;
