// The deliveries of a webhook, and the commands that create more of them.
import { Type } from 'typebox';
import {
  Choice,
  declare,
  declareCommand,
  declareGet,
  declareList,
  Id,
  Int,
  List,
  Nullable,
  none,
  type Of,
  Shape,
  Text,
  Time,
} from './declare.ts';
import { type EventKind, eventKinds } from './events.ts';

export const deliveryStates = ['pending', 'succeeded', 'failed'] as const;
export type DeliveryState = (typeof deliveryStates)[number];

/** The type of a test delivery. It is not an event, and a webhook cannot subscribe to it. */
export const testType = 'webhook.test';
export type DeliveryType = EventKind | typeof testType;

const deliveryFields = {
  id: Id('dlv', 'The delivery.'),
  webhook_id: Id('whk', 'The webhook it is sent to.'),
  event_id: Id('evt', 'The event it delivers. The id of a test belongs to no stored event.'),
  event_type: Choice([...eventKinds, testType], 'The kind of the event.'),
  state: Choice(deliveryStates, '`failed`: no more attempts are made; redeliver or replay sends it again.'),
  attempt_count: Int(0, Number.MAX_SAFE_INTEGER, 'How often it was sent.'),
  next_attempt_at: Nullable(Time('The earliest time of the next attempt.')),
  created_at: Time('When it was created.'),
  finished_at: Nullable(Time('When it succeeded or finally failed.')),
};

export const Delivery = Shape(deliveryFields, { $id: 'Delivery' });
export type Delivery = Of<typeof Delivery>;

const Attempt = Shape(
  {
    number: Int(1, Number.MAX_SAFE_INTEGER, 'The number of the attempt, from 1.'),
    at: Time('When it was sent.'),
    duration_ms: Int(0, 3_600_000, 'How long it took.'),
    status: Nullable(Int(100, 999, 'HTTP status of the receiver’s answer; null: there was none.')),
    error: Nullable(Text(500, 'Why there was no answer.')),
    answer: Nullable(
      Text(
        20_000,
        'The first 16 KiB of the answer’s body; null also if only `SLUICE_WEBHOOK_ALLOW_CIDRS` allows the address.',
      ),
    ),
  },
  { $id: 'DeliveryAttempt' },
);

export const DeliveryDetail = Shape(
  { ...deliveryFields, attempts: List(Attempt, 100, 'The latest 100 attempts, oldest first.') },
  { $id: 'DeliveryDetail' },
);
export type DeliveryDetail = Of<typeof DeliveryDetail>;

const params = Shape({ whk: Id('whk', 'The webhook.') });
const deliveryParams = Shape({ ...params.properties, dlv: Id('dlv', 'The delivery.') });

export const testWebhook = declareCommand({
  name: 'webhooks.test',
  path: '/webhooks/{whk}/test',
  tag: 'webhooks',
  summary: 'Send a test delivery of type `webhook.test`',
  scope: 'webhooks:write',
  params,
  status: 202,
  response: Delivery,
  errors: ['webhook_not_found', 'webhook_not_enabled'],
});

export const replayWebhook = declare({
  name: 'webhooks.replay',
  method: 'POST',
  path: '/webhooks/{whk}/replay',
  tag: 'webhooks',
  summary: 'Resend the events since a given time that did not arrive',
  scope: 'webhooks:write',
  params,
  query: none,
  body: Shape(
    {
      since: Time('Only events from this time on.'),
      only: Type.Optional(
        Choice(
          ['failed', 'missing'],
          '`failed` (default): deliveries that failed. `missing`: also events that never had a delivery.',
        ),
      ),
    },
    { $id: 'Replay' },
  ),
  status: 202,
  response: Shape(
    {
      scheduled: Int(0, 10_000, 'How many deliveries were scheduled.'),
      has_more: Type.Boolean({ description: 'There are more: repeat the request.' }),
    },
    { $id: 'Replayed' },
  ),
  errors: ['webhook_not_found', 'webhook_not_enabled'],
});

export const listDeliveries = declareList({
  name: 'deliveries.list',
  path: '/webhooks/{whk}/deliveries',
  tag: 'webhooks',
  summary: 'List deliveries of a webhook',
  scope: 'webhooks:read',
  params,
  filters: { state: Type.Optional(Choice(deliveryStates, 'Only those in this state.')) },
  item: Delivery,
  errors: ['webhook_not_found'],
});

export const getDelivery = declareGet({
  name: 'deliveries.get',
  path: '/webhooks/{whk}/deliveries/{dlv}',
  tag: 'webhooks',
  summary: 'Get a delivery with every attempt',
  scope: 'webhooks:read',
  params: deliveryParams,
  response: DeliveryDetail,
  errors: ['webhook_not_found', 'delivery_not_found'],
});

export const redeliver = declareCommand({
  name: 'deliveries.redeliver',
  path: '/webhooks/{whk}/deliveries/{dlv}/redeliver',
  tag: 'webhooks',
  summary: 'Send a delivery again, now',
  scope: 'webhooks:write',
  params: deliveryParams,
  status: 202,
  response: Delivery,
  errors: ['webhook_not_found', 'delivery_not_found', 'webhook_not_enabled'],
});
