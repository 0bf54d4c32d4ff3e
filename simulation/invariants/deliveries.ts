import type { DeliveryFact, EventFact, Facts } from '../facts.ts';
import type { Arrival, Receivers } from '../receivers.ts';
import { type Commit, firstOf } from './commit.ts';

/** What arrives is what was stored with the event, every time. */
export function arrivedWithEqualBytes(
  arrival: Arrival,
  delivery: DeliveryFact | undefined,
  event: EventFact | undefined,
  { byDelivery }: Pick<Receivers, 'byDelivery'>,
): string | null {
  const first = byDelivery.get(arrival.delivery)?.[0];
  if (first && first.body !== arrival.body) return `${arrival.delivery} arrived with two bodies`;
  // Its webhook was deleted, and the delivery with it, after it was claimed.
  if (!delivery) return null;
  const stored = delivery.test_body ?? event?.body;
  return stored === arrival.body ? null : `${arrival.delivery} arrived with other bytes than its event has`;
}

/** While an earlier delivery of a strict webhook is pending, no later one is sent for the first time. */
export function overtakes(arrival: Arrival, facts: Facts): string | null {
  const delivery = facts.delivery.find(({ id }) => id === arrival.delivery);
  if (!delivery || delivery.position === 0 || delivery.state !== 'pending') return null;
  const earlier = facts.delivery.find(
    (one) => one.webhook_id === delivery.webhook_id && one.state === 'pending' && one.position < delivery.position,
  );
  return earlier ? `${delivery.id} arrived before ${earlier.id}` : null;
}

export function findUnsentSuccess(
  { before, after }: Commit,
  { byDelivery }: Pick<Receivers, 'byDelivery'>,
): string | null {
  const known = new Map(before.delivery.map(({ id, state }) => [id, state]));
  return firstOf(after.delivery, ({ id, state }) => {
    if (state !== 'succeeded' || known.get(id) === state) return null;
    const arrived = byDelivery.get(id)?.some(({ status }) => status === 200);
    return arrived ? null : `${id} is marked as delivered and no receiver has it`;
  });
}
