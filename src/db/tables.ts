// The tables, the same on both databases: text, integers (times are milliseconds since the epoch, booleans are 0 or 1) and
// JSON stored as text.
import type { HealthState } from '../contract/running/health.ts';
import type { AlertTables } from './tables/alerts.ts';
import type { DomainTables } from './tables/domains.ts';
import type { EventTables } from './tables/events.ts';
import type { LogTables } from './tables/logs.ts';
import type { RolloutTables } from './tables/rollouts.ts';
import type { RoutingTables } from './tables/routing.ts';

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
    /** As the latest look saw it, and since when; why it is not healthy. */
    health_state: HealthState;
    health_since: number;
    health_reason: string | null;
    created_at: number;
    updated_at: number;
    version: number;
  };
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
    /** The request in progress; null once there is a response. */
    owner: string | null;
    lease_until: number;
    response_sealed: string | null;
    created_at: number;
  };
  rate_cell: { key: string; cell: number; count: number; granted: number };
  meta: { name: string; value: string };
}
