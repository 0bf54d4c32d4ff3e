// The steps that a rollout can take, whether the rules decide on them or a person commands them. No I/O.
import type { CanaryPhase, DeploymentState, FailureCode, RollbackCause, Strategy } from '../../contract/deployments.ts';
import type { CanaryPolicy } from '../../contract/environments.ts';

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
  /** When the warm-up ends and requests begin to count; null: they count already. */
  countsFrom: number | null;
  deadlineAt: number;
  cause: RollbackCause | null;
}

export interface Failure {
  code: FailureCode;
  message: string;
}

export interface Policy {
  canary: CanaryPolicy;
  autoRollback: boolean;
  startTimeoutS: number;
}

/** What deciding by itself takes besides. */
export interface RolloutPolicy extends Policy {
  /** How long pulling the image may take in all. */
  pullTimeoutS: number;
}

export interface Step {
  to: DeploymentState;
  message: string;
  deadlineAt: number | null;
  digest?: string;
  /** The port of the revision, where its image decides. */
  port?: number;
  canary?: { phase: CanaryPhase; step: number; until: number | null };
  /** Whether requests count from now on, or only once the warm-up is over. */
  counts?: boolean;
  failure?: Failure;
  cause?: RollbackCause;
}

const minuteMs = 60_000;
const abortingForMs = 5 * minuteMs;
const promotingExtraMs = 5 * minuteMs;
/** How long a step waits for enough requests after its bake. */
const bakeExtraMs = 30 * minuteMs;

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

/** To the next share, or to all traffic after the last one, and why. Also what `promote` does. */
export function advance(rollout: Rollout, policy: Policy, nowMs: number, reason: string): Step {
  if (rollout.step >= rollout.percents.length) return promote(policy, nowMs, reason);
  const next = beginStep(rollout, rollout.step + 1, policy, nowMs);
  return { ...next, message: `${next.message} ${reason}` };
}

/** Begins the given step, or restarts it. Also what `resume` does. */
export function beginStep({ percents }: Rollout, step: number, policy: Policy, nowMs: number): Step {
  const { bake_s, warmup_s } = policy.canary;
  const until = nowMs + bake_s * 1000;
  return {
    to: 'canary',
    message: `${percents[step - 1]} % of requests go to the new revision.`,
    deadlineAt: until + Math.max(bakeExtraMs, 10 * bake_s * 1000),
    canary: { phase: 'baking', step, until },
    counts: warmup_s === 0,
  };
}

/** The warm-up is over. */
export function beginCounting(rollout: Rollout): Step {
  return {
    to: 'canary',
    message: 'The warm-up is over: requests count from now on.',
    deadlineAt: rollout.deadlineAt,
    canary: { phase: 'baking', step: rollout.step, until: rollout.stepUntil },
    counts: true,
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

export function promote(policy: Policy, nowMs: number, message: string): Step {
  return {
    to: 'promoting',
    message: `${message} Moving all traffic.`,
    deadlineAt: nowMs + promotingForMs(policy),
  };
}

export const promotedAt = ({ deadlineAt }: Rollout, policy: Policy): number => deadlineAt - promotingForMs(policy);

const promotingForMs = ({ startTimeoutS }: Policy): number => startTimeoutS * 1000 + promotingExtraMs;

export function undo(cause: RollbackCause, failure: Failure, nowMs: number): Step {
  return { to: 'aborting', message: failure.message, deadlineAt: nowMs + abortingForMs, failure, cause };
}

export const end = (to: 'failed' | 'canceled', failure: Failure): Step => ({
  to,
  message: failure.message,
  deadlineAt: null,
  failure,
});
