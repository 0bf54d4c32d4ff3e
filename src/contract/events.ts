import { type TSchema, Type } from 'typebox';
import { Alert } from './alerts.ts';
import { Choice, declare, declareGet, declareList, Id, Int, Shape, Time } from './declare.ts';
import { Deployment, rollbackCauses } from './deployments.ts';
import { Domain } from './domains.ts';
import { Revision } from './revisions.ts';

/** Every kind of event, and when it happens. */
export const eventCatalogue = {
  'deployment.created': 'A deployment was created.',
  'deployment.succeeded': 'A deployment succeeded: its revision serves all traffic.',
  'deployment.failed': 'A deployment failed or was canceled. The previous revision serves all traffic.',
  'revision.rolled_back': 'A revision lost its traffic to an earlier one. `cause` says why.',
  'alert.fired': 'An alert fired: the condition of its rule held long enough.',
  'alert.resolved': 'An alert was resolved: the condition of its rule no longer holds.',
  'domain.certificate_renewed': 'A domain serves a renewed certificate.',
} as const;

export type EventKind = keyof typeof eventCatalogue;

export const eventKinds = Object.keys(eventCatalogue) as EventKind[];

export const RolledBackRevision = Shape(
  { ...Revision.properties, cause: Choice(rollbackCauses, 'Why it lost its traffic.') },
  { $id: 'RolledBackRevision' },
);

/** The record in `data`, as the API returns it. */
const records = {
  'deployment.created': Deployment,
  'deployment.succeeded': Deployment,
  'deployment.failed': Deployment,
  'revision.rolled_back': RolledBackRevision,
  'alert.fired': Alert,
  'alert.resolved': Alert,
  'domain.certificate_renewed': Domain,
} satisfies Record<EventKind, TSchema>;

const nameOf = (kind: EventKind): string =>
  `${kind.replaceAll(/(?:^|[._])([a-z])/g, (_, letter: string) => letter.toUpperCase())}Event`;

const eventOf = (kind: EventKind) =>
  Shape(
    {
      id: Id('evt', 'The event; the same in each of its deliveries.'),
      type: Choice([kind], eventCatalogue[kind]),
      created_at: Time('When it happened.'),
      project_id: Id('prj', 'The project it belongs to.'),
      sequence: Int(1, Number.MAX_SAFE_INTEGER, 'Counts the events of the project, without gaps.'),
      data: records[kind],
    },
    { $id: nameOf(kind) },
  );

/** The body of a delivery, by kind. */
export const eventSchemas = Object.fromEntries(eventKinds.map((kind) => [kind, eventOf(kind)])) as unknown as Record<
  EventKind,
  ReturnType<typeof eventOf>
>;

export interface AnyEvent {
  id: string;
  type: EventKind;
  created_at: string;
  project_id: string;
  sequence: number;
  data: unknown;
}

export const AnyEvent = Type.Unsafe<AnyEvent>(
  Type.Union(Object.values(eventSchemas), {
    $id: 'Event',
    description: 'An event; `type` determines which record `data` holds.',
  }),
);

const filters = {
  type: Type.Optional(Choice(eventKinds, 'Only those of this kind.')),
  project_id: Type.Optional(Id('prj', 'Only those of this project.')),
};

export const listEvents = declareList({
  name: 'events.list',
  path: '/events',
  tag: 'events',
  summary: 'List events',
  scope: 'events:read',
  params: Shape({}),
  filters: { ...filters },
  item: AnyEvent,
  errors: ['project_not_found'],
});

export const streamEvents = declare({
  name: 'events.stream',
  method: 'GET',
  path: '/events/stream',
  tag: 'events',
  summary: 'Follow events as they happen; `Last-Event-ID` resumes after that event',
  scope: 'events:read',
  params: Shape({}),
  query: Shape({
    ...filters,
    changes: Type.Optional(
      Choice(['true'], 'Also sends `changed`, without an id, when something else in a project has changed.'),
    ),
  }),
  body: undefined,
  status: 200,
  response: Type.String({
    maxLength: 1_000_000,
    pattern: '^',
    description:
      'Server-sent events: `id`, `event` (the kind) and `data` (the event) of each; with `changes`, also `changed` ' +
      'with `{"project_id", "environment"}`: fetch again what you display of it. If the event in `Last-Event-ID` is not ' +
      'stored, `reset` comes first, and then every event from the oldest on.',
  }),
  media: 'text/event-stream',
  errors: ['project_not_found', 'quota_exceeded'],
});

export const getEvent = declareGet({
  name: 'events.get',
  path: '/events/{evt}',
  tag: 'events',
  summary: 'Get an event',
  scope: 'events:read',
  params: Shape({ evt: Id('evt', 'The event.') }),
  response: AnyEvent,
  errors: ['event_not_found'],
});
