// Stored times that are further in the future than anything could have set them: the clock that wrote them was wrong,
// or has been set back since. They are clamped to the latest they could be, so that a rollout still ends in time.
import { databaseOf } from '../../lib/clock.ts';
import { bucketMs } from '../../traffic/measurements.ts';
import { type DeploymentRow, insertTimeline, setDeploymentTimes } from '../deployment-queries.ts';
import { type InstanceRow, setInstanceStateSince } from '../instance-queries.ts';
import { rolloutOf } from '../rules/desired.ts';
import { beginStep, hold, promote, queuedForMs, type Rollout, type RolloutPolicy, undo } from '../rules/rollout.ts';
import { measuredFromNow } from '../save-step.ts';
import type { EnvironmentLease } from './environment-leases.ts';
import type { ReconcileContext } from './reconcile-context.ts';

/** Returns whether anything was clamped: the next pass then reads the corrected times. */
export async function clampRolloutTimes(
  { lease, clock, deadlineClock, log }: Pick<ReconcileContext, 'lease' | 'clock' | 'deadlineClock' | 'log'>,
  deployment: DeploymentRow,
  policy: RolloutPolicy,
): Promise<boolean> {
  const times = clampToLatest(rolloutOf(deployment, policy), policy, deadlineClock.now());
  // A canary step that begins in the future would count no requests until then.
  const { step_since, step_baseline } = deployment;
  const isUnmeasured = step_baseline !== null && step_since !== null && step_since > databaseOf(clock).now() + bucketMs;
  if (!times && !isUnmeasured) return false;
  log.info(
    { deployment: deployment.id },
    'the times of a rollout are ahead of the clock, which was set back: corrected',
  );
  await lease.write(async (tx) =>
    setDeploymentTimes(tx, deployment, {
      ...times,
      ...(isUnmeasured && (await measuredFromNow(tx, clock, deployment))),
    }),
  );
  return true;
}

/** How often it is noted that a canary is being measured, and after how long without that it was not. */
const notedEveryMs = 5000;
const interruptedAfterMs = 15_000;

/**
 * A bake counts the time in which the canary was measured: what passed while the service was down is added to it. Returns
 * whether anything was written.
 */
export async function continueBake(
  { lease, deadlineClock }: Pick<ReconcileContext, 'lease' | 'deadlineClock'>,
  deployment: DeploymentRow,
): Promise<boolean> {
  const { measured_at, step_until, deadline_at, canary_phase } = deployment;
  if (canary_phase !== 'baking' || measured_at === null) return false;
  const nowMs = deadlineClock.now();
  const passedMs = nowMs - measured_at;
  if (Math.abs(passedMs) < notedEveryMs) return false;
  const isInterrupted = passedMs > interruptedAfterMs;
  await lease.write(async (tx) => {
    await setDeploymentTimes(tx, deployment, {
      measured_at: nowMs,
      ...(isInterrupted && {
        step_until: step_until === null ? null : step_until + passedMs,
        deadline_at: deadline_at === null ? null : deadline_at + passedMs,
      }),
    });
    if (!isInterrupted) return;
    const minutes = Math.max(1, Math.round(passedMs / 60_000));
    const message = `It was not measured for ${minutes} min: the bake goes on where it stopped.`;
    await insertTimeline(tx, { deployment_id: deployment.id, at: nowMs, state: deployment.state, message });
  });
  return true;
}

/** Returns the rows with the corrected times. */
export async function clampInstanceTimes(
  lease: EnvironmentLease,
  rows: InstanceRow[],
  nowMs: number,
): Promise<InstanceRow[]> {
  const isAhead = ({ state_since }: InstanceRow) => state_since > nowMs + slackMs;
  const ahead = rows.filter(isAhead).map(({ id }) => id);
  if (ahead.length === 0) return rows;
  await lease.write((tx) => setInstanceStateSince(tx, ahead, nowMs));
  return rows.map((row) => (isAhead(row) ? { ...row, state_since: nowMs } : row));
}

/** Clocks of the same installation normally differ by less than this. */
const slackMs = 5000;

interface Times {
  deadline_at: number;
  step_until: number | null;
}

/** The corrected times; null: nothing is wrong with them. No I/O. */
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

/** What the times would be if the state had begun right now. */
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
