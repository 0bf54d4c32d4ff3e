// Events, webhooks and deliveries.
import type { Generated } from 'kysely';
import type { DeliveryState, DeliveryType } from '../../contract/deliveries.ts';
import type { EventKind } from '../../contract/events.ts';
import type { Ordering, WebhookState } from '../../contract/webhooks.ts';

export interface EventTables {
  event: {
    id: string;
    account_id: string;
    project_id: string;
    type: EventKind;
    sequence: number;
    body: string;
    created_at: number;
    /** Rises in the order of commits within an account; events of one transaction may share it. See events/positions.ts. */
    position: Generated<number>;
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
