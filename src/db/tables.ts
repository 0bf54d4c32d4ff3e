// The tables as the queries see them, on both databases alike: text, whole numbers (times are milliseconds since the
// epoch, truth is 0 or 1) and JSON kept as text.

import type { Generated } from 'kysely';
import type { AlertMetric, Comparator, OnCanary, Severity } from '../contract/alert-rules.ts';
import type { DeliveryState, DeliveryType } from '../contract/deliveries.ts';
import type { CanaryPhase, DeploymentState, FailureCode, RollbackCause, Strategy } from '../contract/deployments.ts';
import type { DomainState } from '../contract/domains.ts';
import type { EventKind } from '../contract/events.ts';
import type { RevisionState } from '../contract/revisions.ts';
import type { Ordering, WebhookState } from '../contract/webhooks.ts';

export type InstanceState = 'starting' | 'healthy' | 'unhealthy' | 'draining';

export interface Tables {
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
    expires_at: number | null;
    last_used_at: number | null;
    revoked_at: number | null;
    created_at: number;
    version: number;
  };
  token_project: { token_id: string; project_id: string };
  project: {
    id: string;
    account_id: string;
    name: string;
    slug: string;
    description: string | null;
    labels: string;
    /** Of its next event. */
    next_sequence: number;
    created_at: number;
    updated_at: number;
    version: number;
  };
  environment: {
    project_id: string;
    name: string;
    region: string;
    /** The first label of its address, unique in the service. */
    host: string;
    replicas: number;
    port: number;
    variable_names: string;
    variables_sealed: string | null;
    health_check: string;
    canary: string;
    auto_rollback: number;
    retention: number;
    drain_s: number;
    locked_reason: string | null;
    locked_at: number | null;
    next_revision: number;
    created_at: number;
    updated_at: number;
    version: number;
  };
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
    /** When the state began, and when it must have ended. */
    state_since: number;
    deadline_at: number | null;
    canary_phase: CanaryPhase | null;
    canary_step: number;
    /** Share of the new revision while it is a canary. */
    canary_percent_now: number;
    /** When the step began, and when it ends at the earliest. */
    step_since: number | null;
    step_until: number | null;
    failure_code: FailureCode | null;
    failure_message: string | null;
    failure_log: string | null;
    /** Why it is being undone. */
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
    state: RevisionState;
    traffic_percent: number;
    restored_from: number | null;
    created_at: number;
    activated_at: number | null;
    retired_at: number | null;
  };
  instance: {
    id: string;
    project_id: string;
    environment: string;
    revision: number;
    region: string;
    /** starting → healthy ⇄ unhealthy → draining; gone: no row. */
    state: InstanceState;
    host: string | null;
    port: number | null;
    created_at: number;
    state_since: number;
  };
  /** Which process looks after an environment, and until when nobody else may. */
  environment_lease: { project_id: string; environment: string; owner: string; until: number };
  traffic: {
    project_id: string;
    environment: string;
    revision: number;
    at: number;
    router: string;
    requests: number;
    errors: number;
    latency: string;
  };
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
    /** It may be gone. */
    rule_id: string;
    environment: string;
    /** What of the environment it is about; of a rule and a subject, one alert is firing at most. */
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
  /** Since when a condition holds, or, while its alert is firing, no longer does. No row: nothing to wait for. */
  alert_watch: { rule_id: string; subject: string; holds: number; since: number };
  event: {
    id: string;
    account_id: string;
    project_id: string;
    type: EventKind;
    sequence: number;
    body: string;
    created_at: number;
    /** Of the transaction that wrote it, on PostgreSQL; the database fills it in. */
    tx: Generated<number>;
  };
  webhook: {
    id: string;
    account_id: string;
    project_id: string | null;
    url: string;
    /** JSON: kinds, or "*". */
    events: string;
    description: string | null;
    ordering: Ordering;
    /** A deleted one stays until its deliveries are gone. */
    state: WebhookState | 'deleted';
    disabled_reason: string | null;
    secret_sealed: string;
    old_secret_sealed: string | null;
    old_secret_until: number | null;
    /** Of its next delivery, where the ordering is strict. */
    next_position: number;
    /** One after the other, since the last success. */
    failures: number;
    failing_since: number | null;
    /** While the breaker is open: when one delivery may try again. */
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
    /** What a test sends; anything else sends the body of its event. */
    test_body: string | null;
    state: DeliveryState;
    /** Its place in a strict order; 0: none. */
    position: number;
    /** While pending: when it may be sent. */
    due_at: number;
    /** Who is sending it. Whoever has lost the lease can no longer say how it went. */
    lease: string | null;
    /** When it may be taken from them; 0: nobody is sending it. */
    lease_until: number;
    attempts: number;
    /** Attempts since it was last asked for: these count for the schedule. */
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
  domain: {
    id: string;
    account_id: string;
    project_id: string;
    environment: string;
    /** In ASCII, unique in the service. */
    hostname: string;
    state: DomainState;
    /** What it serves. */
    certificate_id: string | null;
    last_error: string | null;
    /** One after the other, since the last success. */
    failures: number;
    /** When its certificate is to be looked after; null: never. */
    next_attempt_at: number | null;
    /** The certificate authority asked not to be asked before. */
    wait_until: number | null;
    /** 1: somebody asked for a new certificate before its time. */
    renew_asked: number;
    /** Who is looking after it. Whoever has lost the lease can no longer say how it went. */
    lease_owner: string | null;
    /** When it may be taken from them; 0: nobody is. */
    lease_until: number;
    /** An order under way at a certificate authority, and the key of the certificate it is for. */
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
    /** Its name for renewal information, and when to ask for that again; null: the authority has none. */
    ari_id: string | null;
    ari_ask_at: number | null;
    created_at: number;
  };
  acme_account: { directory: string; url: string | null; key_sealed: string };
  /** What the router answers a certificate authority that checks a name. */
  acme_challenge: { token: string; hostname: string; key_authorization: string; created_at: number };
  audit: {
    id: string;
    account_id: string;
    action: string;
    resource: string;
    project_id: string | null;
    token_id: string;
    request_id: string;
    address: string;
    created_at: number;
  };
  idempotency: {
    token_id: string;
    key: string;
    route: string;
    body_hash: string;
    /** The request that is carrying it out; null once there is a response. */
    owner: string | null;
    lease_until: number;
    response_sealed: string | null;
    created_at: number;
  };
  rate_cell: { key: string; cell: number; count: number; granted: number };
  meta: { name: string; value: string };
}
