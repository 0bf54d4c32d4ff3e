// What the rows of an environment say about the future is mended where a clock that was wrong has written it.
import { sharedOf } from '../../lib/clock.ts';
import { bucketMs } from '../../traffic/measure/measurements.ts';
import { type DeploymentRow, setDeploymentTimes } from '../deployment-queries.ts';
import { type InstanceRow, setInstanceStateSince } from '../instance-queries.ts';
import { rolloutOf } from '../rules/desired.ts';
import { beginStep, hold, promote, queuedForMs, type Rollout, type RolloutPolicy, undo } from '../rules/rollout.ts';
import { measuredFromNow } from '../save-step.ts';
import type { ReconcileContext } from './reconcile-context.ts';

/** Gives whether there was anything to mend: the next look then sees it as it should be. */
export async function clampRolloutTimes(
  context: ReconcileContext,
  deployment: DeploymentRow,
  policy: RolloutPolicy,
): Promise<boolean> {
  const { lasting, lease, clock, log } = context;
  const times = clampToLatest(rolloutOf(deployment, policy), policy, lasting.now());
  // A canary that begins in the future would be judged by nothing until then.
  const { step_since, step_baseline } = deployment;
  const isUnmeasured = step_baseline !== null && step_since !== null && step_since > sharedOf(clock).now() + bucketMs;
  if (!times && !isUnmeasured) return false;
  log.info({ deployment: deployment.id }, 'the times of a rollout are ahead of the clock, which was set back: mended');
  await lease.write(async (tx) =>
    setDeploymentTimes(tx, deployment, {
      ...times,
      ...(isUnmeasured && (await measuredFromNow(tx, context, deployment))),
    }),
  );
  return true;
}

/** The rows as they are then. */
export async function clampInstanceTimes(
  { lasting, lease }: ReconcileContext,
  rows: InstanceRow[],
): Promise<InstanceRow[]> {
  const nowMs = lasting.now();
  const isAhead = ({ state_since }: InstanceRow) => state_since > nowMs + slackMs;
  const ahead = rows.filter(isAhead).map(({ id }) => id);
  if (ahead.length === 0) return rows;
  await lease.write((tx) => setInstanceStateSince(tx, ahead, nowMs));
  return rows.map((row) => (isAhead(row) ? { ...row, state_since: nowMs } : row));
}

// Stored times that are further ahead than anything could have set them: the clock they were written by has been set back
// since, or was another's. They are brought back to the most that they can be, so that a rollout ends in time. No I/O.

/** Clocks of the same installation differ by this much in their ordinary course. */
const slackMs = 5000;

interface Times {
  deadline_at: number;
  step_until: number | null;
}

/** The times as they should be; null: they are. */
export function clampToLatest(rollout: Rollout, policy: RolloutPolicy, nowMs: number): Times | null {
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
