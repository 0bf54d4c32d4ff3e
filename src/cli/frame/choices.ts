// Values of the contract that options take. They are repeated here because loading the contract's schemas takes longer
// than most commands; the types make sure that none is missing or wrong.
import type { AlertMetric, OnCanary, Severity } from '../../contract/alert-rules.ts';
import type { AlertState } from '../../contract/alerts.ts';
import type { DeliveryState } from '../../contract/deliveries.ts';
import type { DeploymentState, Pull, Strategy } from '../../contract/deployments.ts';
import type { CanaryPolicy, environmentDefaults, HealthCheck, Resources } from '../../contract/environments.ts';
import type { EventKind } from '../../contract/events.ts';
import type { Ordering } from '../../contract/webhooks.ts';

const keys = <U extends string>(all: Record<U, true>): readonly U[] => Object.keys(all) as U[];

export const strategies = keys<Strategy>({ rolling: true, canary: true, blue_green: true });

export const pulls = keys<Pull>({ always: true, missing: true });

export const deploymentStates = keys<DeploymentState>({
  queued: true,
  preparing: true,
  starting: true,
  canary: true,
  promoting: true,
  aborting: true,
  succeeded: true,
  failed: true,
  canceled: true,
});

export const alertMetrics = keys<AlertMetric>({
  error_rate: true,
  p95_ms: true,
  request_rate: true,
  healthy_instances: true,
  restarts: true,
  certificate_days_left: true,
  external: true,
});

export const severities = keys<Severity>({ info: true, warning: true, critical: true });
export const onCanaryChoices = keys<OnCanary>({ abort: true, none: true });
export const alertStates = keys<AlertState>({ firing: true, resolved: true });
export const orderings = keys<Ordering>({ none: true, strict: true });
export const deliveryStates = keys<DeliveryState>({ pending: true, succeeded: true, failed: true });

export const eventKinds = keys<EventKind>({
  'deployment.created': true,
  'deployment.succeeded': true,
  'deployment.failed': true,
  'revision.rolled_back': true,
  'alert.fired': true,
  'alert.resolved': true,
  'domain.certificate_renewed': true,
});

type Plain = Exclude<keyof typeof environmentDefaults, 'health_check' | 'resources' | 'canary'>;

/** What `environments set` sets, with a dot where it is in a group. */
export const settingNames: readonly string[] = [
  ...keys<Plain>({ replicas: true, port: true, auto_rollback: true, retention: true, drain_s: true }),
  ...keys<keyof HealthCheck>({
    path: true,
    interval_s: true,
    timeout_s: true,
    healthy_after: true,
    unhealthy_after: true,
    start_timeout_s: true,
  }).map((name) => `health_check.${name}`),
  ...keys<keyof Resources>({ memory_mb: true, cpus: true }).map((name) => `resources.${name}`),
  ...keys<keyof CanaryPolicy>({
    advance: true,
    bake_s: true,
    steps: true,
    min_requests: true,
    max_error_rate: true,
    max_client_error_rate: true,
    max_p95_ms: true,
    approval_timeout_s: true,
    warmup_s: true,
    on_inconclusive: true,
  }).map((name) => `canary.${name}`),
];
