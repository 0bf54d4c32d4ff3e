// What the rows of an environment say about the future is mended where a clock that was wrong has written it.
import { sharedOf } from '../../lib/clock.ts';
import { bucketMs } from '../../traffic/measure/measurements.ts';
import { type InstanceRow, setInstanceStateSince } from '../instances.ts';
import { type DeploymentRow, setDeploymentTimes } from '../queries.ts';
import { slackMs, withoutTimesAhead } from '../rules/ahead.ts';
import { rolloutOf } from '../rules/situation.ts';
import type { RolloutPolicy } from '../rules/steps.ts';
import { measuredFromNow } from '../save-step.ts';
import type { ReconcileContext } from './context.ts';

/** Gives whether there was anything to mend: the next look then sees it as it should be. */
export async function mendRollout(
  context: ReconcileContext,
  deployment: DeploymentRow,
  policy: RolloutPolicy,
): Promise<boolean> {
  const { lasting, lease, clock, log } = context;
  const times = withoutTimesAhead(rolloutOf(deployment, policy), policy, lasting.now());
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
export async function mendInstances({ lasting, lease }: ReconcileContext, rows: InstanceRow[]): Promise<InstanceRow[]> {
  const nowMs = lasting.now();
  const isAhead = ({ state_since }: InstanceRow) => state_since > nowMs + slackMs;
  const ahead = rows.filter(isAhead).map(({ id }) => id);
  if (ahead.length === 0) return rows;
  await lease.write((tx) => setInstanceStateSince(tx, ahead, nowMs));
  return rows.map((row) => (isAhead(row) ? { ...row, state_since: nowMs } : row));
}
