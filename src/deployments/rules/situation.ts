// Turns rows into what the pure rules ask about.
import { canaryPolicyOf, type EnvironmentRow } from '../../environments/queries.ts';
import { healthCheckOf, type RevisionSettings } from '../../environments/revision-settings.ts';
import type { InstanceRow } from '../instances.ts';
import type { DeploymentRow } from '../queries.ts';
import { type Desired, desiredOf } from './desired.ts';
import type { Policy, Rollout } from './steps.ts';

export interface InstanceCounts {
  freshHealthy: number;
  freshExisting: number;
  previousHealthy: number;
}

/** Without draining instances: they only finish the requests they have. */
export function countInstances(rows: InstanceRow[], deployment: DeploymentRow): InstanceCounts {
  const of = (revision: number | null) => rows.filter((row) => row.revision === revision && row.state !== 'draining');
  const healthy = (list: InstanceRow[]) => list.filter((row) => row.state === 'healthy').length;
  const fresh = of(deployment.revision);
  return {
    freshHealthy: healthy(fresh),
    freshExisting: fresh.length,
    previousHealthy: healthy(of(deployment.previous_revision)),
  };
}

/** `fresh`: the revision that is rolled out, whose own health check says how long its instances may take. */
export function policyOf(environment: EnvironmentRow, fresh: Pick<RevisionSettings, 'health_check'>): Policy {
  return {
    canary: canaryPolicyOf(environment),
    autoRollback: environment.auto_rollback === 1,
    startTimeoutS: healthCheckOf(fresh).start_timeout_s,
  };
}

/** The shares of a canary: its first one, then those steps of the environment that are above it. */
export function percentsOf(deployment: DeploymentRow, policy: Pick<Policy, 'canary'>): number[] {
  const first = deployment.canary_percent;
  return first === null ? [] : [first, ...policy.canary.steps.filter((step) => step > first)];
}

export function rolloutOf(deployment: DeploymentRow, policy: Policy): Rollout {
  return {
    state: deployment.state,
    strategy: deployment.strategy,
    hasPrevious: deployment.previous_revision !== null,
    percents: percentsOf(deployment, policy),
    step: deployment.canary_step,
    phase: deployment.canary_phase,
    stepUntil: deployment.step_until,
    countsFrom: deployment.step_baseline === null ? warmFrom(deployment, policy) : null,
    deadlineAt: deployment.deadline_at ?? Number.POSITIVE_INFINITY,
    cause: deployment.cause,
  };
}

/** When the warm-up of the step ends. */
function warmFrom({ step_until }: DeploymentRow, { canary }: Policy): number {
  return (step_until ?? 0) + (canary.warmup_s - canary.bake_s) * 1000;
}

export function desiredFor(deployment: DeploymentRow, replicas: number, counts: InstanceCounts): Desired {
  return desiredOf({
    state: deployment.state,
    strategy: deployment.strategy,
    hasPrevious: deployment.previous_revision !== null,
    percent: deployment.canary_percent_now || (deployment.canary_percent ?? 100),
    replicas,
    ...counts,
  });
}
