import { Type } from 'typebox';
import { Choice, declare, declareList, Int, Nullable, type Of, Shape, Text, Time } from './declare.ts';
import { RevisionId } from './deployments.ts';
import { environmentParams } from './environments.ts';

export const logLevels = ['trace', 'debug', 'info', 'warn', 'error', 'fatal'] as const;
export const logStreams = ['stdout', 'stderr', 'system'] as const;

const EntryId = Type.String({
  pattern: '^[A-Za-z0-9_-]{1,64}\\.\\d{1,12}\\.\\d{1,12}$',
  maxLength: 100,
  description: 'Names the entry for as long as it is kept.',
  examples: ['ins_01k9xw3v5qfk2t8m7c4b6d9e0h.3.18204'],
});

export const LogEntry = Shape(
  {
    id: EntryId,
    at: Time('When it was printed.'),
    instance: Text(64, 'Which instance.'),
    revision: RevisionId,
    stream: Choice(logStreams, '`system`: said by the service, such as that lines were lost.'),
    text: Text(20_000, 'The line; with those that continue it, such as a stack trace.'),
    level: Nullable(Choice(logLevels, 'Of a line of JSON or logfmt that names one.')),
    message: Nullable(Text(20_000, 'Of a line of JSON that has one.')),
    logged_at: Nullable(Time('The time that a line of JSON gives itself.')),
  },
  { $id: 'LogEntry' },
);
export type LogEntry = Of<typeof LogEntry>;

const filters = {
  since: Type.Optional(Time('Only what was printed then or later.')),
  revision: Type.Optional(RevisionId),
  instance: Type.Optional(
    Type.String({ pattern: '^[A-Za-z0-9_-]{1,64}$', maxLength: 64, description: 'Only of this instance.' }),
  ),
  stream: Type.Optional(Choice(logStreams, 'Only of this stream.')),
  search: Type.Optional(
    Text(200, 'Only entries with this text. In small letters it finds capitals too; with capitals it is exact.', 1),
  ),
};

const path = '/projects/{id}/environments/{name}/logs';

export const listLogs = declareList({
  name: 'logs.list',
  path,
  tag: 'deployments',
  summary: 'List log entries of an environment, including those of instances that are gone',
  scope: 'deployments:read',
  params: environmentParams,
  filters: {
    ...filters,
    until: Type.Optional(Time('Only what was printed before.')),
    order: Type.Optional(Choice(['newest', 'oldest'], 'Which entries come first; `newest` if it is left out.')),
    limit: Type.Optional(Int(1, 1000, 'How many entries a page has.', { default: 100 })),
  },
  item: LogEntry,
  errors: ['project_not_found', 'environment_not_found', 'logs_unavailable'],
});

export const streamLogs = declare({
  name: 'logs.stream',
  method: 'GET',
  path: `${path}/stream`,
  tag: 'deployments',
  summary: 'Follow the log of an environment; `Last-Event-ID` resumes after that entry',
  scope: 'deployments:read',
  params: environmentParams,
  query: Shape(filters),
  body: undefined,
  status: 200,
  response: Type.String({
    maxLength: 1_000_000,
    pattern: '^',
    description:
      'Server-sent events: `id`, `event` (`entry`) and `data` (the entry, as in the list) of each, over restarts and ' +
      'rollouts. After a reconnection some entries may come again; their ids tell.',
  }),
  media: 'text/event-stream',
  errors: ['project_not_found', 'environment_not_found', 'quota_exceeded'],
});
