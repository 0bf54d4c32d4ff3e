import { Type } from 'typebox';
import { declareCommand, declareCreate, declareGet, declareList } from './declare.ts';
import { EnvironmentName, projectParams } from './projects.ts';
import { declare } from './route.ts';
import { Choice, Id, Int, List, Nullable, type Of, Rate, Shape, Text, Time } from './shapes.ts';

export const strategies = ['rolling', 'canary', 'blue_green'] as const;
export type Strategy = (typeof strategies)[number];

export const deploymentStates = [
  'queued',
  'preparing',
  'starting',
  'canary',
  'promoting',
  'aborting',
  'succeeded',
  'failed',
  'canceled',
] as const;
export type DeploymentState = (typeof deploymentStates)[number];

export const failureCodes = [
  'image_not_found',
  'image_denied',
  'start_timeout',
  'health_check_failed',
  'crashed',
  'analysis_failed',
  'alert_fired',
  'aborted',
  'approval_timeout',
  'deadline_exceeded',
  'region_lost',
] as const;
export type FailureCode = (typeof failureCodes)[number];

export const canaryPhases = ['baking', 'paused', 'awaiting_approval'] as const;
export type CanaryPhase = (typeof canaryPhases)[number];

export const rollbackCauses = ['manual', 'analysis', 'alert', 'deadline', 'abort'] as const;
export type RollbackCause = (typeof rollbackCauses)[number];

export const RevisionId = Type.String({
  pattern: '^r[1-9][0-9]{0,9}$',
  maxLength: 11,
  description: 'A revision, counted per environment.',
  examples: ['r7'],
});

export const Image = (description: string) =>
  Type.String({
    minLength: 1,
    maxLength: 500,
    pattern: '^[!-~]+$',
    description,
    examples: ['registry.example/shop:1.4'],
  });

const Side = (description: string) =>
  Shape(
    {
      requests: Int(0, Number.MAX_SAFE_INTEGER, 'Answered since the step began.'),
      error_rate: Nullable(Rate('Share of 5xx answers; null without requests.')),
      p95_ms: Nullable(Type.Number({ minimum: 0, maximum: 1e9, format: 'double', description: 'Latency.' })),
    },
    { description },
  );

export const Deployment = Shape(
  {
    id: Id('dpl', 'The deployment.'),
    project_id: Id('prj', 'Its project.'),
    environment: EnvironmentName,
    kind: Choice(['deploy', 'rollback'], 'What made it.'),
    revision: RevisionId,
    previous_revision: Nullable(RevisionId),
    image: Image('What was asked for.'),
    digest: Nullable(Text(100, 'What it was when it was prepared; this runs.')),
    strategy: Choice(strategies, 'How traffic moves.'),
    canary_percent: Nullable(Int(1, 99, 'First share of a canary.')),
    state: Choice(deploymentStates, 'Where it is.'),
    canary: Nullable(
      Shape({
        phase: Choice(canaryPhases, 'What it waits for.'),
        step: Int(1, 21, 'Which share in turn.'),
        percent: Int(1, 99, 'The share it has.'),
        until: Nullable(Time('When the step ends at the earliest; null: when somebody says so.')),
        stable: Side('What the revision before did meanwhile.'),
        canary: Side('What the new one did.'),
      }),
    ),
    failure: Nullable(
      Shape({
        code: Choice(failureCodes, 'Why.'),
        message: Text(2000, 'For people.'),
        log_tail: List(Text(2000, 'A line.'), 50, 'The last lines of the instance that failed.'),
      }),
    ),
    note: Nullable(Text(500, 'For people.')),
    created_by: Id('tok', 'The token that asked for it.'),
    created_at: Time('When it was asked for.'),
    started_at: Nullable(Time('When work on it began.')),
    finished_at: Nullable(Time('When it ended.')),
    timeline: List(
      Shape({
        at: Time('When.'),
        state: Choice(deploymentStates, 'The state it was then in.'),
        message: Text(2000, 'What happened.'),
      }),
      500,
      'What happened, oldest first.',
    ),
  },
  { $id: 'Deployment' },
);
export type Deployment = Of<typeof Deployment>;

const CreateDeployment = Shape(
  {
    environment: EnvironmentName,
    image: Image('`registry/name:tag`, a digest is allowed.'),
    strategy: Type.Optional(Choice(strategies, 'Default `rolling`.')),
    canary_percent: Type.Optional(Int(1, 99, 'Only with strategy `canary`; default 10.')),
    note: Type.Optional(Nullable(Text(500, 'For people.'))),
  },
  { $id: 'CreateDeployment' },
);

const LogLine = Shape(
  {
    at: Time('When.'),
    instance: Text(64, 'Which instance.'),
    stream: Choice(['stdout', 'stderr'], 'Which stream.'),
    text: Text(20_000, 'The line.'),
  },
  { $id: 'LogLine' },
);

const params = Shape({ ...projectParams.properties, dpl: Id('dpl', 'The deployment.') });

export const listDeployments = declareList({
  name: 'deployments.list',
  path: '/projects/{id}/deployments',
  tag: 'deployments',
  summary: 'List deployments of a project',
  scope: 'deployments:read',
  params: projectParams,
  filters: {
    environment: Type.Optional(EnvironmentName),
    state: Type.Optional(Choice(deploymentStates, 'Only in this state.')),
  },
  item: Deployment,
  errors: ['project_not_found'],
});

export const createDeployment = declareCreate({
  name: 'deployments.create',
  path: '/projects/{id}/deployments',
  tag: 'deployments',
  summary: 'Deploy an image',
  scope: 'deployments:write',
  params: projectParams,
  body: CreateDeployment,
  response: Deployment,
  versioned: true,
  errors: [
    'project_not_found',
    'deployment_in_progress',
    'environment_unknown',
    'environment_locked',
    'region_unavailable',
  ],
});

export const getDeployment = declareGet({
  name: 'deployments.get',
  path: '/projects/{id}/deployments/{dpl}',
  tag: 'deployments',
  summary: 'Get a deployment',
  scope: 'deployments:read',
  params,
  response: Deployment,
  versioned: true,
  errors: ['project_not_found', 'deployment_not_found'],
});

const command = <const V extends string>(
  verb: V,
  summary: string,
  more: readonly ['canary_unhealthy'] | readonly [] = [],
) =>
  declareCommand({
    name: `deployments.${verb}`,
    path: `/projects/{id}/deployments/{dpl}/${verb}`,
    tag: 'deployments',
    summary,
    scope: 'deployments:write',
    params,
    response: Deployment,
    versioned: true,
    errors: ['project_not_found', 'deployment_not_found', 'deployment_state_conflict', ...more],
  });

export const promoteDeployment = command('promote', 'Go on with a canary: to its next step, or to all traffic', [
  'canary_unhealthy',
]);
export const pauseDeployment = command('pause', 'Hold a canary at its share');
export const resumeDeployment = command('resume', 'Go on with a paused canary; its step begins anew');
export const abortDeployment = command('abort', 'End a deployment; the revision before serves all traffic');

export const getDeploymentLogs = declare({
  name: 'deployments.logs',
  method: 'GET',
  path: '/projects/{id}/deployments/{dpl}/logs',
  tag: 'deployments',
  summary: 'Get the latest log lines of its instances, oldest first',
  scope: 'deployments:read',
  params,
  query: Shape({
    tail: Type.Optional(Int(1, 1000, 'At most this many lines.', { default: 100 })),
    since: Type.Optional(Time('Only lines after this time.')),
  }),
  body: undefined,
  status: 200,
  response: Shape({ data: List(LogLine, 1000, 'The lines.') }, { $id: 'LogLines' }),
  errors: ['project_not_found', 'deployment_not_found', 'region_unavailable'],
});
