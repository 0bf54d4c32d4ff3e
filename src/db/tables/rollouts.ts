// Deployments, revisions, instances and the router's measurements.
import type { Generated } from 'kysely';
import type { CanaryPhase, DeploymentState, FailureCode, RollbackCause, Strategy } from '../../contract/deployments.ts';
import type { RevisionState } from '../../contract/revisions.ts';
import type { EndReason } from '../../contract/running/instances.ts';

export type InstanceState = 'starting' | 'healthy' | 'unhealthy' | 'draining';

export interface RolloutTables {
  deployment: {
    id: string;
    account_id: string;
    project_id: string;
    environment: string;
    kind: 'deploy' | 'rollback';
    revision: number;
    previous_revision: number | null;
    image: string;
    digest: string | null;
    strategy: Strategy;
    canary_percent: number | null;
    state: DeploymentState;
    /** When the state began, and when it must have ended at the latest. */
    state_since: number;
    deadline_at: number | null;
    canary_phase: CanaryPhase | null;
    canary_step: number;
    /** The canary's current share of the traffic. */
    canary_percent_now: number;
    /** When the step began, and when it ends at the earliest. */
    step_since: number | null;
    step_until: number | null;
    /** JSON: what had been measured of both revisions before the step began, in the ten seconds in which it did. */
    step_baseline: string | null;
    failure_code: FailureCode | null;
    failure_message: string | null;
    failure_log: string | null;
    /** Why it is being rolled back. */
    cause: RollbackCause | null;
    note: string | null;
    created_by: string;
    created_at: number;
    started_at: number | null;
    finished_at: number | null;
    version: number;
  };
  deployment_timeline: { deployment_id: string; seq: number; at: number; state: DeploymentState; message: string };
  revision: {
    project_id: string;
    environment: string;
    number: number;
    deployment_id: string;
    image: string;
    digest: string | null;
    port: number;
    variables_sealed: string | null;
    health_check: string;
    resources: string;
    state: RevisionState;
    traffic_percent: number;
    restored_from: number | null;
    created_at: number;
    activated_at: number | null;
    retired_at: number | null;
  };
  /** The instances of a revision, as their engine knows them. Its row is there before it is, and after. */
  instance_set: {
    id: string;
    project_id: string;
    environment: string;
    revision: number;
    region: string;
    created_at: number;
  };
  instance: {
    id: string;
    project_id: string;
    environment: string;
    revision: number;
    region: string;
    /** starting → healthy ⇄ unhealthy → draining → the row is deleted. */
    state: InstanceState;
    host: string | null;
    port: number | null;
    created_at: number;
    state_since: number;
    /** How many instances before it, in a row, ended by themselves in its place. */
    restarts: Generated<number>;
    /** Where it runs; null: not known, or not started yet. */
    node: string | null;
    /** When its engine was first seen to run it. */
    started_at: number | null;
    /** What the latest health check said, as of some seconds ago. */
    checked_at: number | null;
    check_ok: number | null;
    check_message: string | null;
  };
  /** An instance that ended although it should have run. */
  instance_end: {
    id: string;
    project_id: string;
    environment: string;
    revision: number;
    node: string | null;
    restarts: number;
    started_at: number | null;
    ended_at: number;
    exit_code: number | null;
    reason: EndReason;
    /** Why, for people. */
    message: string;
    checked_at: number | null;
    check_ok: number | null;
    check_message: string | null;
    /** 1: another instance has its place by now. */
    replaced: number;
  };
  /** A port that an instance has, or had so recently that nobody else may have it. */
  instance_port: {
    host: string;
    port: number;
    instance_id: string;
    /** When the instance was found to be gone; null: it is there. */
    freed_at: number | null;
    /** A version of the routing table without the instance. */
    freed_version: number;
  };
  /** Which process reconciles an environment, and until when it alone may. Each new holder has a higher fence. */
  environment_lease: {
    project_id: string;
    environment: string;
    owner: string;
    until: number;
    fence: Generated<number>;
  };
  /** What an instance used, measured every ten seconds or so. */
  instance_usage: {
    project_id: string;
    environment: string;
    revision: number;
    instance_id: string;
    at: number;
    memory_bytes: number;
    /** Since it started: the time that it computed, in milliseconds. */
    cpu_ms: number;
  };
  traffic: {
    project_id: string;
    environment: string;
    revision: number;
    at: number;
    router: string;
    requests: number;
    errors: number;
    client_errors: number;
    latency: string;
  };
}
