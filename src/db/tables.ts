// The tables, the same on both databases: text, integers (times are milliseconds since the epoch, booleans are 0 or 1) and
// JSON stored as text.

import type { Generated } from 'kysely';
import type { AlertMetric, Comparator, OnCanary, Severity } from '../contract/alert-rules.ts';
import type { DeliveryState, DeliveryType } from '../contract/deliveries.ts';
import type {
  CanaryPhase,
  DeploymentState,
  FailureCode,
  Pull,
  RollbackCause,
  Strategy,
} from '../contract/deployments.ts';
import type { DomainProof, DomainState } from '../contract/domains.ts';
import type { EventKind } from '../contract/events.ts';
import type { EndReason } from '../contract/instances.ts';
import type { HealthState } from '../contract/projects.ts';
import type { RevisionState } from '../contract/revisions.ts';
import type { Ordering, WebhookState } from '../contract/webhooks.ts';

export interface Tables extends RolloutTables, RoutingTables, AlertTables, EventTables, DomainTables, LogTables {
  account: { id: string; name: string; created_at: number };
  token: {
    id: string;
    account_id: string;
    kind: 'user' | 'admin';
    name: string;
    /** SHA-256 of the secret, hex. */
    hash: string;
    scopes: string;
    /** 1: only the projects in token_project. */
    bound: number;
    /** The token that made it; null: none did, or it is from before this was kept. */
    parent_id: string | null;
    expires_at: number | null;
    last_used_at: number | null;
    revoked_at: number | null;
    created_at: number;
    version: number;
  };
  /** A browser that signed in to the console with a token. */
  console_session: {
    id: string;
    account_id: string;
    token_id: string;
    /** SHA-256 of the cookie, hex. */
    cookie_hash: string;
    address: string;
    user_agent: string | null;
    created_at: number;
    last_used_at: number;
    expires_at: number;
    ended_at: number | null;
  };
  token_project: { token_id: string; project_id: string };
  /** Logins of registries. */
  registry: {
    id: string;
    account_id: string;
    host: string;
    username: string;
    password_sealed: string;
    /** 1: only for the projects in registry_project. */
    bound: number;
    created_at: number;
    version: number;
  };
  registry_project: { registry_id: string; project_id: string };
  project: {
    id: string;
    account_id: string;
    name: string;
    slug: string;
    description: string | null;
    labels: string;
    /** The sequence number of its next event. */
    next_sequence: number;
    /** How many of its events have deliveries that are still to be inserted (event_backlog). */
    backlog: number;
    /** It is gone for everyone but the sweeper, which clears away what belongs to it in slices. */
    deleted_at: number | null;
    created_at: number;
    updated_at: number;
    version: number;
  };
  environment: {
    project_id: string;
    name: string;
    region: string;
    /** The first label of its address; unique. */
    host: string;
    replicas: number;
    port: number;
    /** 0: `port` is the default, and an image that exposes one port decides. */
    port_set: number;
    variable_names: string;
    /** Which variable_set, or, from before there were any, the sealed variables themselves. */
    variables_sealed: string | null;
    health_check: string;
    resources: string;
    canary: string;
    auto_rollback: number;
    retention: number;
    drain_s: number;
    locked_reason: string | null;
    locked_at: number | null;
    next_revision: number;
    /** What the latest reconcile pass found, and since when; why it is not healthy. */
    health_state: HealthState;
    health_since: number;
    health_reason: string | null;
    /** As for a project. */
    deleted_at: number | null;
    created_at: number;
    updated_at: number;
    version: number;
  };
  /** The variables of an environment, or of revisions of it. `id`: a keyed digest of what they are. */
  variable_set: { project_id: string; environment: string; id: string; sealed: string; bytes: number };
  /**
   * What is too much to count when it is asked for. Of projects and environments it is what an account has at most
   * (accounts/quotas.ts).
   */
  account_usage: { account_id: string; resource: 'log_bytes' | 'projects' | 'environments'; used: number };
  /** The host of a deleted environment: until then no other account gets it. */
  kept_host: { host: string; account_id: string; until: number };
  audit: {
    id: string;
    account_id: string;
    action: string;
    resource: string;
    project_id: string | null;
    token_id: string;
    request_id: string;
    address: string;
    /** JSON: a list of field, from, to; null: nothing that was there changed. */
    changes: string | null;
    created_at: number;
  };
  idempotency: {
    token_id: string;
    key: string;
    route: string;
    body_hash: string;
    /** The request in progress; null once there is a response. */
    owner: string | null;
    lease_until: number;
    response_sealed: string | null;
    created_at: number;
  };
  rate_cell: { key: string; cell: number; count: number; granted: number };
  meta: { name: string; value: string };
}

// Deployments, revisions, instances and the router's measurements.

export type InstanceState = 'starting' | 'healthy' | 'unhealthy' | 'draining';

interface RolloutTables {
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
    pull: Generated<Pull>;
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
    /** When the canary was last seen while it baked. */
    measured_at: number | null;
    /** The instance of the canary that was replaced, because it alone failed: its requests do not count. */
    replaced_instance: string | null;
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
    /** 1: unhealthy only because it could not be reached; it gets requests while no instance of its environment is healthy. */
    is_fallback: Generated<number>;
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
    /** Whose instance it is or was; null: from before this was kept. */
    account_id: string | null;
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
    /** While a canary runs (traffic/request-detail.ts). */
    detail: string | null;
  };
}

// What routers follow, and what they have in force.
interface RoutingTables {
  /** The routing version at which an environment last changed. Stays when the environment is deleted. */
  routing: { project_id: string; environment: string; version: number };
  /** A router, the version it has in force, and a count that rises as long as it lives. */
  router: {
    id: string;
    version: number;
    beat: number;
    /** After which beat, and for how long, processes have waited for the next one in vain, one after another. */
    silent_beat: Generated<number>;
    silent_ms: Generated<number>;
  };
  /** An instance that left the table at this version. */
  instance_drain: {
    instance_id: string;
    version: number;
    /** When every live router had that version in force; null: not yet. */
    unrouted_at: number | null;
    /** For how long processes have waited since then, one after another. */
    unrouted_ms: Generated<number>;
  };
}

// Events, webhooks and deliveries.

interface EventTables {
  event: {
    id: string;
    account_id: string;
    project_id: string;
    type: EventKind;
    sequence: number;
    body: string;
    created_at: number;
    /** Rises in the order of commits within an account; events of one transaction may share it. See events/event-positions.ts. */
    position: Generated<number>;
  };
  /** An event whose deliveries were too many for its transaction: they are inserted in slices. */
  event_backlog: {
    account_id: string;
    project_id: string;
    /** Of the event: those of a project are taken in this order. */
    sequence: number;
    event_id: string;
    type: EventKind;
    /** The webhooks up to this one have theirs. */
    after_webhook: string;
    /** The newest webhook of the account when the event was written. */
    last_webhook: string;
  };
  webhook: {
    id: string;
    account_id: string;
    project_id: string | null;
    url: string;
    /** JSON: a list of kinds, or "*". */
    events: string;
    description: string | null;
    ordering: Ordering;
    /** A deleted webhook stays until its deliveries are deleted. */
    state: WebhookState | 'deleted';
    disabled_reason: string | null;
    secret_sealed: string;
    old_secret_sealed: string | null;
    old_secret_until: number | null;
    /** The position of its next delivery if the ordering is strict. */
    next_position: number;
    /** Consecutive failures. */
    failures: number;
    failing_since: number | null;
    /** While the circuit breaker is open: when one delivery may be tried. */
    probe_at: number | null;
    created_at: number;
    updated_at: number;
    version: number;
  };
  delivery: {
    id: string;
    webhook_id: string;
    event_id: string;
    type: DeliveryType;
    /** The body of a test; other deliveries send the body of their event. */
    test_body: string | null;
    state: DeliveryState;
    /** Its position in a strict order; 0: none. */
    position: number;
    /** While pending: when it may be sent. */
    due_at: number;
    /** The claim that holds the lease. Only its holder can write the outcome. */
    lease: string | null;
    /** 0: not leased. */
    lease_until: number;
    attempts: number;
    /** Attempts since it was created or replayed; these count for the retry schedule. */
    tried: number;
    created_at: number;
    finished_at: number | null;
  };
  attempt: {
    delivery_id: string;
    number: number;
    at: number;
    duration_ms: number;
    status: number | null;
    error: string | null;
    answer: string | null;
  };
}

// Alert rules, alerts, and what the watcher remembers.

interface AlertTables {
  alert_rule: {
    id: string;
    project_id: string;
    environment: string;
    name: string;
    metric: AlertMetric;
    comparator: Comparator;
    threshold: number;
    hostname: string | null;
    window_s: number;
    for_s: number;
    severity: Severity;
    on_canary: OnCanary;
    enabled: number;
    created_at: number;
    updated_at: number;
    version: number;
  };
  alert: {
    id: string;
    account_id: string;
    project_id: string;
    /** The rule may be deleted. */
    rule_id: string;
    environment: string;
    /** A revision, a hostname or the environment itself. At most one alert per rule and subject is firing. */
    subject: string;
    name: string;
    severity: Severity;
    message: string;
    revision: number | null;
    hostname: string | null;
    value: number;
    fired_at: number;
    resolved_at: number | null;
  };
  /** Since when a condition holds, or, for a firing alert, no longer holds. No row: there is nothing to wait for. */
  alert_watch: { rule_id: string; subject: string; holds: number; since: number };
}

// Domains and certificates.

interface DomainTables {
  domain: {
    id: string;
    account_id: string;
    project_id: string;
    environment: string;
    /** In ASCII; unique. */
    hostname: string;
    state: DomainState;
    /** null: nothing shows yet that the account may use the hostname, so it is not routed. */
    proof: DomainProof | null;
    /** What the last lookup of its TXT record found instead, as a JSON array; null: no lookup, or DNS did not answer. */
    txt_found: string | null;
    /** The certificate that it serves. */
    certificate_id: string | null;
    last_error: string | null;
    /** Consecutive failures. */
    failures: number;
    /** When the issuer processes it next; null: never. */
    next_attempt_at: number | null;
    /** The certificate authority asked us to wait until then. */
    wait_until: number | null;
    /** 1: a user asked for an early renewal. */
    renew_asked: number;
    /** The claim that holds the lease. Only its holder can write the outcome. */
    lease_owner: string | null;
    /** 0: not leased. */
    lease_until: number;
    /** The order in progress at a certificate authority, and the key of its certificate. */
    order_directory: string | null;
    order_url: string | null;
    order_key_sealed: string | null;
    created_at: number;
    updated_at: number;
    version: number;
  };
  certificate: {
    id: string;
    domain_id: string;
    issuer: string;
    serial: string;
    not_before: number;
    not_after: number;
    renew_at: number;
    fingerprint_sha256: string;
    chain_pem: string;
    key_sealed: string;
    /** Its identifier in renewal information, and when to ask for that again; null: the authority offers none. */
    ari_id: string | null;
    ari_ask_at: number | null;
    created_at: number;
  };
  acme_account: { directory: string; url: string | null; key_sealed: string };
  /** Responses to http-01 challenges. */
  acme_challenge: { token: string; hostname: string; key_authorization: string; created_at: number };
}

// What instances printed.
interface LogTables {
  /** How far the log of an instance has been collected. */
  log_stream: {
    instance_id: string;
    project_id: string;
    environment: string;
    revision: number;
    /** In the engine's log, behind the last line that is stored; null: none is. */
    position: string | null;
    /** The time of the last line, from which on times only rise. */
    latest: string;
    /** Of its next segment. */
    seq: number;
    /** Rises with each segment: of two processes that collect the same log, one is refused. */
    version: number;
    updated_at: number;
  };
  /** Some lines of one instance, in their order. The last one of an instance grows until it is large enough. */
  log_segment: {
    instance_id: string;
    seq: number;
    project_id: string;
    environment: string;
    revision: number;
    /** Of its first and its last line. */
    from_at: number;
    to_at: number;
    lines: number;
    raw_bytes: number;
    /** Compressed. */
    bytes: number;
    /** Where its bytes are, and under which name. */
    place: LogPlace;
    blob: string;
    updated_at: number;
  };
  /** The bytes of segments, where they are kept in the database. */
  log_blob: { id: string; project_id: string; environment: string; data: Uint8Array; created_at: number };
}

export type LogPlace = 'files' | 'database' | 's3';
