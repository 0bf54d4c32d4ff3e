// The desired state of an environment: how many instances of each revision should run, and which share of the requests
// each should get. Also turns rows into what the rules of a rollout ask for. No I/O.
import type { DeploymentState, Strategy } from '../../contract/deployments.ts';
import { canaryPolicyOf, type EnvironmentRow } from '../../environments/environment-queries.ts';
import { healthCheckOf, type RevisionSettings } from '../../environments/revision-settings.ts';
import type { DeploymentRow } from '../deployment-queries.ts';
import type { InstanceRow } from '../instance-queries.ts';
import type { Policy, Rollout } from './rollout.ts';

interface InstanceCounts {
  targetHealthy: number;
  targetExisting: number;
  previousHealthy: number;
}

export interface Situation extends InstanceCounts {
  /** null: no deployment in progress. */
  state: DeploymentState | null;
  strategy: Strategy;
  hasPrevious: boolean;
  /** The target revision was found to be worse: it gets no request that the previous one can take. */
  isProvedBad: boolean;
  /** The share of the canary's current step, or of its first. */
  percent: number;
  replicas: number;
}

export interface Desired {
  target: number;
  previous: number;
  /** Share of requests that the target revision gets; the rest goes to the previous one. */
  targetPercent: number;
}

export function desiredOf(s: Situation): Desired {
  const previous = s.hasPrevious ? s.replicas : 0;
  switch (s.state) {
    case null:
    case 'queued':
    case 'preparing':
    case 'failed':
    case 'canceled':
      return { target: 0, previous, targetPercent: 0 };
    case 'starting':
      return { target: atStart(s), previous, targetPercent: 0 };
    case 'canary':
      return { target: canaryInstances(s), previous, targetPercent: s.percent };
    case 'promoting':
      return promoting(s, previous);
    case 'aborting': {
      // The drained instances of the previous revision come back before those of the new one go.
      const restored = s.previousHealthy >= previous;
      return { target: restored ? 0 : s.targetExisting, previous, targetPercent: shareWhileAborting(s, previous) };
    }
    case 'succeeded':
      return { target: s.replicas, previous: 0, targetPercent: 100 };
  }
}

/** By what can serve: the new revision stands in for the instances that the previous one does not have yet. */
function shareWhileAborting({ hasPrevious, previousHealthy, targetHealthy, isProvedBad }: Situation, previous: number) {
  if (!hasPrevious || targetHealthy === 0) return 0;
  if (previousHealthy === 0) return 100;
  if (isProvedBad) return 0;
  const standIns = Math.min(targetHealthy, Math.max(0, previous - previousHealthy));
  return Math.round((100 * standIns) / (previousHealthy + standIns));
}

function atStart(s: Situation): number {
  if (!s.hasPrevious || s.strategy === 'blue_green') return s.replicas;
  return s.strategy === 'canary' ? canaryInstances(s) : 1;
}

/** As many instances as the share asks for: one at least, and never all at once. */
const canaryInstances = ({ replicas, percent }: Situation): number =>
  Math.max(1, Math.ceil((replicas * percent) / 100));

function promoting(s: Situation, previous: number): Desired {
  const healthy = Math.min(s.targetHealthy, s.replicas);
  const complete = healthy >= s.replicas;
  if (complete) return { target: s.replicas, previous: 0, targetPercent: 100 };
  if (!s.hasPrevious) return { target: s.replicas, previous: 0, targetPercent: healthy > 0 ? 100 : 0 };
  // The previous revision may have left already, and more replicas were asked for after that.
  const shareOf = (percent: number) => (s.previousHealthy === 0 && healthy > 0 ? 100 : percent);
  if (s.strategy === 'rolling') {
    // One more than are healthy. As many old ones leave as new ones have become healthy, so never fewer serve.
    return {
      target: Math.min(s.replicas, healthy + 1),
      previous: previous - healthy,
      targetPercent: shareOf(Math.round((100 * healthy) / s.replicas)),
    };
  }
  return { target: s.replicas, previous, targetPercent: shareOf(s.strategy === 'canary' ? s.percent : 0) };
}

/** Without draining instances: they only finish the requests they have. */
export function countInstances(rows: InstanceRow[], deployment: DeploymentRow): InstanceCounts {
  const of = (revision: number | null) => rows.filter((row) => row.revision === revision && row.state !== 'draining');
  const healthy = (list: InstanceRow[]) => list.filter((row) => row.state === 'healthy').length;
  const target = of(deployment.revision);
  return {
    targetHealthy: healthy(target),
    targetExisting: target.length,
    previousHealthy: healthy(of(deployment.previous_revision)),
  };
}

/** The target revision's own health check says how long its instances may take to start. */
export function policyOf(environment: EnvironmentRow, target: Pick<RevisionSettings, 'health_check'>): Policy {
  return {
    canary: canaryPolicyOf(environment),
    autoRollback: environment.auto_rollback === 1,
    startTimeoutS: healthCheckOf(target).start_timeout_s,
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
    replaced: deployment.replaced_instance,
    deadlineAt: deployment.deadline_at ?? Number.POSITIVE_INFINITY,
    cause: deployment.cause,
  };
}

export function desiredFor(deployment: DeploymentRow, replicas: number, counts: InstanceCounts): Desired {
  return desiredOf({
    state: deployment.state,
    strategy: deployment.strategy,
    hasPrevious: deployment.previous_revision !== null,
    isProvedBad: deployment.cause === 'analysis' || deployment.cause === 'alert',
    percent: deployment.canary_percent_now || (deployment.canary_percent ?? 100),
    replicas,
    ...counts,
  });
}
