import { Type } from 'typebox';
import {
  Choice,
  declare,
  declareCreate,
  declareDelete,
  declareGet,
  declareList,
  declareUpdate,
  Id,
  Int,
  Nullable,
  none,
  type Of,
  Shape,
  Text,
  Time,
  Words,
} from './declare.ts';
import { eventKinds } from './events.ts';

export const orderings = ['none', 'strict'] as const;
export type Ordering = (typeof orderings)[number];

const webhookStates = ['enabled', 'paused', 'disabled'] as const;
export type WebhookState = (typeof webhookStates)[number];

const Url = Type.String({
  format: 'uri',
  minLength: 8,
  maxLength: 2000,
  pattern: '^https?://[!-~]+$',
  description: 'Where deliveries go: http or https, no credentials in it.',
  examples: ['https://hooks.example/sluice'],
});

const Kinds = Type.Array(Choice([...eventKinds, '*'], 'A kind of event; `*`: all, including future ones.'), {
  minItems: 1,
  maxItems: eventKinds.length + 1,
  uniqueItems: true,
  description: 'The kinds of events it receives.',
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
  state: Choice(webhookStates, '`paused`: deliveries wait. `disabled`: none are created; replay sends them later.'),
  disabled_reason: Nullable(Text(500, 'Why the service disabled it.')),
  failing_since: Nullable(Time('The first failure since the last success.')),
  probe_at: Nullable(Time('Set while it keeps failing: one delivery is sent at this time, and none before.')),
  created_at: Time('When it was created.'),
};

export const Webhook = Shape(webhookFields, { $id: 'Webhook' });
export type Webhook = Of<typeof Webhook>;

const Secret = Type.String({
  maxLength: 100,
  pattern: '^whsec_[A-Za-z0-9+/]{43}=$',
  description: 'Signs deliveries. Shown only once.',
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
    state: Type.Optional(Choice(['enabled', 'paused'], '`enabled` also resets past failures.')),
  },
  { $id: 'UpdateWebhook' },
);

const params = Shape({ whk: Id('whk', 'The webhook.') });

export const listWebhooks = declareList({
  name: 'webhooks.list',
  path: '/webhooks',
  tag: 'webhooks',
  summary: 'List webhooks',
  scope: 'webhooks:read',
  params: none,
  filters: { search: Type.Optional(Words) },
  item: Webhook,
});

export const createWebhook = declareCreate({
  name: 'webhooks.create',
  path: '/webhooks',
  tag: 'webhooks',
  summary: 'Register a webhook; also needs `events:read`. Its secret is shown only once',
  scope: 'webhooks:write',
  params: none,
  body: CreateWebhook,
  response: WebhookWithSecret,
  versioned: true,
  errors: ['project_not_found', 'webhook_url_not_allowed', 'quota_exceeded'],
});

export const getWebhook = declareGet({
  name: 'webhooks.get',
  path: '/webhooks/{whk}',
  tag: 'webhooks',
  summary: 'Get a webhook',
  scope: 'webhooks:read',
  params,
  response: Webhook,
  versioned: true,
  errors: ['webhook_not_found'],
});

export const updateWebhook = declareUpdate({
  name: 'webhooks.update',
  path: '/webhooks/{whk}',
  tag: 'webhooks',
  summary: 'Change, pause or enable a webhook. A new URL or new events also need `events:read`',
  scope: 'webhooks:write',
  params,
  body: UpdateWebhook,
  response: Webhook,
  errors: ['webhook_not_found', 'webhook_url_not_allowed'],
});

export const deleteWebhook = declareDelete({
  name: 'webhooks.delete',
  path: '/webhooks/{whk}',
  tag: 'webhooks',
  summary: 'Delete a webhook and its deliveries',
  scope: 'webhooks:write',
  params,
  errors: ['webhook_not_found'],
});

export const rotateSecret = declare({
  name: 'webhooks.rotate-secret',
  method: 'POST',
  path: '/webhooks/{whk}/rotate-secret',
  tag: 'webhooks',
  summary: 'Replace the secret. During the overlap, `webhook-signature` has a signature with each',
  scope: 'webhooks:write',
  params,
  query: none,
  body: Shape(
    { overlap_s: Type.Optional(Int(0, 604_800, 'Seconds that the old secret stays valid.', { default: 86_400 })) },
    { $id: 'RotateSecret' },
  ),
  bodyOptional: true,
  status: 200,
  response: WebhookWithSecret,
  versioned: true,
  errors: ['webhook_not_found'],
});
