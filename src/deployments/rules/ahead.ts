// Stored times that are further ahead than anything could have set them: the clock they were written by has been set back
// since, or was another's. They are brought back to the most that they can be, so that a rollout ends in time. No I/O.
import { queuedForMs } from './rollout.ts';
import { beginStep, hold, promote, type Rollout, type RolloutPolicy, undo } from './steps.ts';

/** Clocks of the same installation differ by this much in their ordinary course. */
export const slackMs = 5000;

interface Times {
  deadline_at: number;
  step_until: number | null;
}

/** The times as they should be; null: they are. */
export function withoutTimesAhead(rollout: Rollout, policy: RolloutPolicy, nowMs: number): Times | null {
  const latest = latestOf(rollout, policy, nowMs);
  const { deadlineAt, stepUntil } = rollout;
  const isAhead = deadlineAt > latest.deadline_at + slackMs;
  const isStepAhead = stepUntil !== null && latest.step_until !== null && stepUntil > latest.step_until + slackMs;
  if (!isAhead && !isStepAhead) return null;
  return {
    deadline_at: isAhead ? latest.deadline_at : deadlineAt,
    step_until: isStepAhead ? latest.step_until : stepUntil,
  };
}

/** What they would be if the state had begun right now. */
function latestOf(rollout: Rollout, policy: RolloutPolicy, nowMs: number): Times {
  const noFailure = { code: 'aborted', message: '' } as const;
  const begun = beginStep(rollout, Math.max(1, rollout.step), policy, nowMs);
  const deadlineIn = (ms: number): Times => ({ deadline_at: nowMs + ms, step_until: null });
  switch (rollout.state) {
    case 'queued':
      return deadlineIn(queuedForMs);
    case 'preparing':
      return deadlineIn(policy.pullTimeoutS * 1000);
    case 'starting':
      return deadlineIn(policy.startTimeoutS * 1000);
    case 'canary':
      return rollout.phase === 'baking'
        ? { deadline_at: begun.deadlineAt!, step_until: begun.canary!.until }
        : { deadline_at: hold(rollout, policy, nowMs, '').deadlineAt!, step_until: null };
    case 'promoting':
      return { deadline_at: promote(policy, nowMs, '').deadlineAt!, step_until: null };
    case 'aborting':
      return { deadline_at: undo('abort', noFailure, nowMs).deadlineAt!, step_until: null };
    case 'succeeded':
    case 'failed':
    case 'canceled':
      return deadlineIn(Number.POSITIVE_INFINITY);
  }
}
