// How an attempt went, and how that is written in SQL: the attempt is a new row, and the delivery moves on.
import type { DeliveryState } from '../../contract/deliveries.ts';

export interface Outcome {
  id: string;
  webhook_id: string;
  lease: string;
  /** Of the attempt. */
  number: number;
  at: number;
  duration_ms: number;
  status: number | null;
  error: string | null;
  answer: string | null;
  /** Of the delivery from now on. */
  state: DeliveryState;
  tried: number;
  due_at: number;
  finished_at: number | null;
}

/** All but the webhook, which a delivery never changes. */
export const outcomeFields = {
  id: 'text',
  lease: 'text',
  number: 'bigint',
  at: 'bigint',
  duration_ms: 'bigint',
  status: 'bigint',
  error: 'text',
  answer: 'text',
  state: 'text',
  tried: 'bigint',
  due_at: 'bigint',
  finished_at: 'bigint',
} as const satisfies Record<keyof Omit<Outcome, 'webhook_id'>, 'text' | 'bigint'>;

/** Of the delivery, from an outcome `r`. */
export const deliveryChanges = `state = r.state, attempts = r.number, tried = r.tried, due_at = r.due_at,
  finished_at = r.finished_at, lease = null, lease_until = 0`;

/** To be followed by where the outcomes `r` come from. */
export const insertAttempts = `insert into attempt (delivery_id, number, at, duration_ms, status, error, answer)
  select r.id, r.number, r.at, r.duration_ms, r.status, r.error, r.answer`;
