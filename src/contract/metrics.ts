import { Type } from 'typebox';
import { declare, Int, List, Nullable, type Of, Rate, Shape, Text, Time } from './declare.ts';
import { RevisionId } from './deployments.ts';
import { environmentParams, revisionSettings } from './environments.ts';
import { EnvironmentName, projectParams } from './projects.ts';

export const maxPoints = 1000;

const Latency = (description: string) =>
  Nullable(Type.Number({ minimum: 0, maximum: 1e9, format: 'double', description }));

const Point = Shape({
  at: Time('When the step begins.'),
  requests: Int(0, Number.MAX_SAFE_INTEGER, 'Requests answered in the step.'),
  request_rate: Type.Number({ minimum: 0, maximum: 1e9, format: 'double', description: 'Requests a second.' }),
  error_rate: Nullable(Rate('Share of 5xx answers; null without requests.')),
  p50_ms: Latency('Median latency; null without requests.'),
  p95_ms: Latency('95th percentile of latency; null without requests.'),
});

export const Metrics = Shape(
  {
    environment: EnvironmentName,
    from: Time('Beginning of the first step.'),
    to: Time('End of the last step.'),
    step_s: Int(10, 86_400, 'Length of a step in seconds.'),
    series: List(
      Shape({ revision: RevisionId, points: List(Point, maxPoints, 'One for every step, oldest first.') }),
      50,
      'One for every revision that got requests, newest first.',
    ),
  },
  { $id: 'Metrics' },
);
export type Metrics = Of<typeof Metrics>;

export const getMetrics = declare({
  name: 'metrics.get',
  method: 'GET',
  path: '/projects/{id}/metrics',
  tag: 'alerts',
  summary: 'Get traffic metrics of an environment, per revision, over time',
  scope: 'alerts:read',
  params: projectParams,
  query: Shape({
    environment: Type.Optional(Type.String({ ...EnvironmentName, description: 'Default `production`.' })),
    revision: Type.Optional(RevisionId),
    from: Type.Optional(Time('Default: an hour before `to`. Measurements are kept for seven days.')),
    to: Type.Optional(Time('Default: now.')),
    step_s: Type.Optional(
      Int(10, 86_400, `A multiple of 10, at most ${maxPoints} steps. Default: the least that gives at most 120.`),
    ),
  }),
  body: undefined,
  status: 200,
  response: Metrics,
  errors: ['project_not_found', 'environment_unknown'],
});

const UsagePoint = Shape({
  at: Time('When the step begins.'),
  memory_bytes: Nullable(
    Int(0, Number.MAX_SAFE_INTEGER, 'The most memory it had in the step, without files that are only cached.'),
  ),
  cpus: Nullable(
    Type.Number({ minimum: 0, maximum: 1e6, format: 'double', description: 'CPUs it used: 0.5 is half of one.' }),
  ),
});

export const Usage = Shape(
  {
    from: Time('Beginning of the first step.'),
    to: Time('End of the last step.'),
    step_s: Int(10, 86_400, 'Length of a step in seconds.'),
    series: List(
      Shape({
        instance: Text(64, 'Which instance.'),
        revision: RevisionId,
        limits: revisionSettings.resources,
        points: List(UsagePoint, maxPoints, 'One for every step, oldest first; null where nothing was measured.'),
      }),
      50,
      'One for every instance that was measured, newest first.',
    ),
  },
  { $id: 'Usage' },
);
export type Usage = Of<typeof Usage>;

export const getUsage = declare({
  name: 'environments.usage',
  method: 'GET',
  path: '/projects/{id}/environments/{name}/usage',
  tag: 'deployments',
  summary: 'Get the memory and CPU usage of its instances, over time',
  scope: 'deployments:read',
  params: environmentParams,
  query: Shape({
    revision: Type.Optional(RevisionId),
    from: Type.Optional(Time('Default: an hour before `to`. Measurements are kept for a day.')),
    to: Type.Optional(Time('Default: now.')),
    step_s: Type.Optional(
      Int(10, 86_400, `A multiple of 10, at most ${maxPoints} steps. Default: the least that gives at most 120.`),
    ),
  }),
  body: undefined,
  status: 200,
  response: Usage,
  errors: ['project_not_found', 'environment_not_found'],
});
