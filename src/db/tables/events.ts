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
}
