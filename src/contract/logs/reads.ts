import { Type } from 'typebox';
import { declareList } from '../declare/declare.ts';
import { declare } from '../declare/route.ts';
import { Choice, Int, Shape, Text, Time } from '../declare/shapes.ts';
import { RevisionId } from '../deployments.ts';
import { environmentParams } from '../environments.ts';
import { LogEntry, logStreams } from './entry.ts';

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
  summary: 'List what instances of an environment printed, also those that are gone',
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
  summary: 'Follow what instances of an environment print; `Last-Event-ID` resumes after that entry',
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
