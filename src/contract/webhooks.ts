import { Type } from 'typebox';
import { type EventKind, eventKinds } from './events.ts';
import { declare } from './route.ts';
import { Choice, Id, Int, List, Nullable, type Of, Page, pageQuery, Shape, Text, Time } from './shapes.ts';

export const orderings = ['none', 'strict'] as const;
export type Ordering = (typeof orderings)[number];

export const webhookStates = ['enabled', 'paused', 'disabled'] as const;
export type WebhookState = (typeof webhookStates)[number];

export const deliveryStates = ['pending', 'succeeded', 'failed'] as const;
export type DeliveryState = (typeof deliveryStates)[number];

/** What a test sends: never an event, and nobody can ask for it. */
export const testType = 'webhook.test';
export type DeliveryType = EventKind | typeof testType;

const Url = Type.String({
  format: 'uri',
  minLength: 8,
  maxLength: 2000,
  pattern: '^https?://[!-~]+$',
  description: 'Where deliveries go: http or https, no credentials in it.',
  examples: ['https://hooks.example/sluice'],
});

const Kinds = Type.Array(Choice([...eventKinds, '*'], 'A kind of event; `*`: all, also those to come.'), {
  minItems: 1,
  maxItems: eventKinds.length + 1,
  uniqueItems: true,
  description: 'What it is told of.',
});

const Description = Nullable(Text(500, 'For people.'));
const OrderingField = Choice(orderings, '`strict`: one delivery at a time, each project’s events in sequence.');

const webhookFields = {
  id: Id('whk', 'The webhook.'),
  url: Url,
  events: Kinds,
  project_id: Nullable(Id('prj', 'Only events of this project; null: of every project of the account.')),
  description: Description,
  ordering: OrderingField,
  state: Choice(webhookStates, '`paused`: deliveries wait. `disabled`: none are made; replay makes up for them.'),
  disabled_reason: Nullable(Text(500, 'Why the service disabled it.')),
  failing_since: Nullable(Time('The first failure since the last success.')),
  probe_at: Nullable(Time('It keeps failing: nothing is sent before this time, and then one delivery.')),
  created_at: Time('When it was made.'),
};

export const Webhook = Shape(webhookFields, { $id: 'Webhook' });
export type Webhook = Of<typeof Webhook>;

const Secret = Type.String({
  maxLength: 100,
  pattern: '^whsec_[A-Za-z0-9+/]{43}=$',
  description: 'Signs deliveries. Shown this once.',
});

const WebhookWithSecret = Shape({ ...webhookFields, secret: Secret }, { $id: 'WebhookWithSecret' });

const CreateWebhook = Shape(
  {
    url: Url,
    events: Kinds,
    project_id: Type.Optional(Nullable(Id('prj', 'Only events of this project.'))),
    description: Type.Optional(Description),
    ordering: Type.Optional(OrderingField),
  },
  { $id: 'CreateWebhook' },
);

const UpdateWebhook = Shape(
  {
    url: Type.Optional(Url),
    events: Type.Optional(Kinds),
    description: Type.Optional(Description),
    ordering: Type.Optional(OrderingField),
    state: Type.Optional(Choice(['enabled', 'paused'], '`enabled` also forgets past failures.')),
  },
  { $id: 'UpdateWebhook' },
);

const deliveryFields = {
  id: Id('dlv', 'The delivery.'),
  webhook_id: Id('whk', 'Where it goes.'),
  event_id: Id('evt', 'What it tells of; of a test, nothing that can be read elsewhere.'),
  event_type: Choice([...eventKinds, testType], 'Of what kind.'),
  state: Choice(deliveryStates, '`failed`: given up; redeliver or replay sends it again.'),
  attempt_count: Int(0, Number.MAX_SAFE_INTEGER, 'How often it was sent.'),
  next_attempt_at: Nullable(Time('When it is sent again, at the earliest.')),
  created_at: Time('When it was made.'),
  finished_at: Nullable(Time('When it arrived or was given up.')),
};

export const Delivery = Shape(deliveryFields, { $id: 'Delivery' });
export type Delivery = Of<typeof Delivery>;

const Attempt = Shape(
  {
    number: Int(1, Number.MAX_SAFE_INTEGER, 'Which in turn.'),
    at: Time('When it was sent.'),
    duration_ms: Int(0, 3_600_000, 'How long it took.'),
    status: Nullable(Int(100, 999, 'What the receiver answered; null: nothing.')),
    error: Nullable(Text(500, 'Why there was no answer.')),
    answer: Nullable(Text(20_000, 'The first 16 KiB of the answer’s body.')),
  },
  { $id: 'DeliveryAttempt' },
);

export const DeliveryDetail = Shape(
  { ...deliveryFields, attempts: List(Attempt, 100, 'Every attempt, oldest first; of very many, the latest 100.') },
  { $id: 'DeliveryDetail' },
);
export type DeliveryDetail = Of<typeof DeliveryDetail>;

const params = Shape({ whk: Id('whk', 'The webhook.') });
const deliveryParams = Shape({ ...params.properties, dlv: Id('dlv', 'The delivery.') });
const none = Shape({});

export const listWebhooks = declare({
  name: 'webhooks.list',
  method: 'GET',
  path: '/webhooks',
  tag: 'webhooks',
  summary: 'List webhooks',
  scope: 'webhooks:read',
  params: none,
  query: Shape({ ...pageQuery }),
  body: undefined,
  status: 200,
  response: Page(Webhook),
  errors: ['invalid_cursor'],
});

export const createWebhook = declare({
  name: 'webhooks.create',
  method: 'POST',
  path: '/webhooks',
  tag: 'webhooks',
  summary: 'Register a webhook; its secret is shown this once',
  scope: 'webhooks:write',
  params: none,
  query: none,
  body: CreateWebhook,
  status: 201,
  response: WebhookWithSecret,
  versioned: true,
  errors: ['project_not_found', 'webhook_url_not_allowed', 'quota_exceeded'],
});

export const getWebhook = declare({
  name: 'webhooks.get',
  method: 'GET',
  path: '/webhooks/{whk}',
  tag: 'webhooks',
  summary: 'Get a webhook',
  scope: 'webhooks:read',
  params,
  query: none,
  body: undefined,
  status: 200,
  response: Webhook,
  versioned: true,
  errors: ['webhook_not_found'],
});

export const updateWebhook = declare({
  name: 'webhooks.update',
  method: 'PATCH',
  path: '/webhooks/{whk}',
  tag: 'webhooks',
  summary: 'Change a webhook, pause it, or enable it again',
  scope: 'webhooks:write',
  params,
  query: none,
  body: UpdateWebhook,
  status: 200,
  response: Webhook,
  versioned: true,
  errors: ['webhook_not_found', 'webhook_url_not_allowed'],
});

export const deleteWebhook = declare({
  name: 'webhooks.delete',
  method: 'DELETE',
  path: '/webhooks/{whk}',
  tag: 'webhooks',
  summary: 'Delete a webhook and its deliveries',
  scope: 'webhooks:write',
  params,
  query: none,
  body: undefined,
  status: 204,
  response: undefined,
  versioned: true,
  errors: ['webhook_not_found'],
});

export const rotateSecret = declare({
  name: 'webhooks.rotate-secret',
  method: 'POST',
  path: '/webhooks/{whk}/rotate-secret',
  tag: 'webhooks',
  summary: 'Replace the secret; for a while `webhook-signature` is made with both',
  scope: 'webhooks:write',
  params,
  query: none,
  body: Shape(
    { overlap_s: Type.Optional(Int(0, 604_800, 'How long the old one stays valid.', { default: 86_400 })) },
    { $id: 'RotateSecret' },
  ),
  bodyOptional: true,
  status: 200,
  response: WebhookWithSecret,
  versioned: true,
  errors: ['webhook_not_found'],
});

export const testWebhook = declare({
  name: 'webhooks.test',
  method: 'POST',
  path: '/webhooks/{whk}/test',
  tag: 'webhooks',
  summary: 'Send a test, of type `webhook.test`',
  scope: 'webhooks:write',
  params,
  query: none,
  body: undefined,
  status: 202,
  response: Delivery,
  errors: ['webhook_not_found', 'webhook_not_enabled'],
});

export const replayWebhook = declare({
  name: 'webhooks.replay',
  method: 'POST',
  path: '/webhooks/{whk}/replay',
  tag: 'webhooks',
  summary: 'Send again what did not arrive since a time',
  scope: 'webhooks:write',
  params,
  query: none,
  body: Shape(
    {
      since: Time('Events from this time on.'),
      only: Type.Optional(
        Choice(
          ['failed', 'missing'],
          '`failed` (default): deliveries that were given up. `missing`: also events that never had a delivery.',
        ),
      ),
    },
    { $id: 'Replay' },
  ),
  status: 202,
  response: Shape(
    {
      scheduled: Int(0, 10_000, 'How many deliveries are on their way.'),
      has_more: Type.Boolean({ description: 'There are more: ask again.' }),
    },
    { $id: 'Replayed' },
  ),
  errors: ['webhook_not_found', 'webhook_not_enabled'],
});

export const listDeliveries = declare({
  name: 'deliveries.list',
  method: 'GET',
  path: '/webhooks/{whk}/deliveries',
  tag: 'webhooks',
  summary: 'List deliveries of a webhook',
  scope: 'webhooks:read',
  params,
  query: Shape({ ...pageQuery, state: Type.Optional(Choice(deliveryStates, 'Only in this state.')) }),
  body: undefined,
  status: 200,
  response: Page(Delivery),
  errors: ['webhook_not_found', 'invalid_cursor'],
});

export const getDelivery = declare({
  name: 'deliveries.get',
  method: 'GET',
  path: '/webhooks/{whk}/deliveries/{dlv}',
  tag: 'webhooks',
  summary: 'Get a delivery with every attempt',
  scope: 'webhooks:read',
  params: deliveryParams,
  query: none,
  body: undefined,
  status: 200,
  response: DeliveryDetail,
  errors: ['webhook_not_found', 'delivery_not_found'],
});

export const redeliver = declare({
  name: 'deliveries.redeliver',
  method: 'POST',
  path: '/webhooks/{whk}/deliveries/{dlv}/redeliver',
  tag: 'webhooks',
  summary: 'Send a delivery again, now',
  scope: 'webhooks:write',
  params: deliveryParams,
  query: none,
  body: undefined,
  status: 202,
  response: Delivery,
  errors: ['webhook_not_found', 'delivery_not_found', 'webhook_not_enabled'],
});
