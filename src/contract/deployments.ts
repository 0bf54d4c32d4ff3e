import { Type } from 'typebox';
import {
  Choice,
  declare,
  declareCommand,
  declareCreate,
  declareGet,
  declareList,
  Id,
  Int,
  List,
  Nullable,
  type Of,
  Rate,
  Shape,
  Text,
  Time,
  Words,
} from './declare.ts';
import { EnvironmentName, projectParams } from './projects.ts';

export const strategies = ['rolling', 'canary', 'blue_green'] as const;
export type Strategy = (typeof strategies)[number];

export const pulls = ['always', 'missing'] as const;
export type Pull = (typeof pulls)[number];

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

const failureCodes = [
  'image_not_found',
  'image_denied',
  'registry_unreachable',
  'start_timeout',
  'port_not_listening',
  'health_check_failed',
  'out_of_memory',
  'crashed',
  'start_failed',
  'unschedulable',
  'quota_exceeded',
  'analysis_failed',
  'alert_fired',
  'aborted',
  'approval_timeout',
  'deadline_exceeded',
  'region_lost',
] as const;
export type FailureCode = (typeof failureCodes)[number];

const canaryPhases = ['baking', 'paused', 'awaiting_approval'] as const;
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
      requests: Int(0, Number.MAX_SAFE_INTEGER, 'Requests answered since the step began.'),
      error_rate: Nullable(Rate('Share of 5xx answers; null without requests.')),
      client_error_rate: Nullable(Rate('Share of 4xx answers; null without requests.')),
      p95_ms: Nullable(Type.Number({ minimum: 0, maximum: 1e9, format: 'double', description: 'Latency.' })),
    },
    { description },
  );

const Odds = (description: string) => Type.Number({ minimum: 0, maximum: 1e9, format: 'double', description });

export const Deployment = Shape(
  {
    id: Id('dpl', 'The deployment.'),
    project_id: Id('prj', 'Its project.'),
    environment: EnvironmentName,
    kind: Choice(['deploy', 'rollback'], 'Whether it was a new deployment or a rollback.'),
    revision: RevisionId,
    previous_revision: Nullable(RevisionId),
    image: Image('The image as requested.'),
    digest: Nullable(
      Text(
        100,
        'The digest that the image had when it was pulled, or its id where it is `local`; exactly this image runs.',
      ),
    ),
    local: Type.Boolean({ description: 'The image was not pulled: the engine had it, and `digest` is its id there.' }),
    pull: Choice(pulls, 'Whether a registry was asked for the image although the engine had one of that name.'),
    strategy: Choice(strategies, 'How traffic moves.'),
    canary_percent: Nullable(Int(1, 99, 'Initial traffic of a canary, in percent.')),
    state: Choice(deploymentStates, 'Its current state.'),
    canary: Nullable(
      Shape({
        phase: Choice(canaryPhases, 'Observed, paused, or waiting for `promote`.'),
        step: Int(1, 21, 'The number of the step, from 1.'),
        percent: Int(1, 99, 'Percentage of requests that the canary gets.'),
        until: Nullable(Time('The earliest end of the step; null: it waits for a command.')),
        stable: Side('Measurements of the previous revision during the step.'),
        canary: Side('Measurements of the canary during the step.'),
        analysis: Shape(
          {
            verdict: Choice(['good', 'bad', 'inconclusive'], 'What the requests of this step show so far.'),
            reason: Text(2000, 'For people, with the numbers.'),
            evidence: Shape({
              errors: Odds(
                'How many to one the requests speak for a canary with more errors, by an amount that matters; at most 1,000,000,000.',
              ),
              latency: Odds('The same for a slower one.'),
              client_errors: Odds('The same for one with more 4xx; undone for it only with `max_client_error_rate`.'),
              needed: Odds('Odds from which the canary is undone.'),
            }),
          },
          { description: 'How the canary compares with its limits and the stable revision.' },
        ),
      }),
    ),
    failure: Nullable(
      Shape({
        code: Choice(failureCodes, 'Why.'),
        message: Text(2000, 'For people.'),
        log_tail: List(Text(2000, 'A line.'), 50, 'The last lines of the instance that failed; none in events.'),
      }),
    ),
    note: Nullable(Text(500, 'For people.')),
    created_by: Id('tok', 'The token that created it.'),
    created_at: Time('When it was created.'),
    started_at: Nullable(Time('When work on it began.')),
    finished_at: Nullable(Time('When it ended.')),
    timeline: List(
      Shape({
        at: Time('When.'),
        state: Choice(deploymentStates, 'The state it entered.'),
        message: Text(2000, 'What happened.'),
      }),
      500,
      'What happened, oldest first.',
    ),
  },
  { $id: 'Deployment' },
);
export type Deployment = Of<typeof Deployment>;

/** How a deployment is carried out. */
export const rolloutChoices = {
  strategy: Type.Optional(Choice(strategies, 'Default `rolling`.')),
  canary_percent: Type.Optional(Int(1, 99, 'Only with strategy `canary`; default 10.')),
  note: Type.Optional(Nullable(Text(500, 'For people.'))),
};

const CreateDeployment = Shape(
  {
    environment: EnvironmentName,
    image: Image('`registry/name:tag`, a digest is allowed.'),
    pull: Type.Optional(
      Choice(
        pulls,
        'Default `always`. `missing`: an image of that name that the engine has is used as it is; only the account that ' +
          'runs the service may use what was not pulled for it.',
      ),
    ),
    ...rolloutChoices,
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
    state: Type.Optional(Choice(deploymentStates, 'Only those in this state.')),
    search: Type.Optional(Words),
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

export const promoteDeployment = command('promote', 'Promote a canary to its next step, or to all traffic', [
  'canary_unhealthy',
]);
export const pauseDeployment = command('pause', 'Pause a canary at its current traffic');
export const resumeDeployment = command('resume', 'Resume a paused canary; its step starts again');
export const abortDeployment = command('abort', 'Abort a deployment; the previous revision serves all traffic');

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
  response: Shape(
    {
      data: List(LogLine, 1000, 'The lines.'),
      truncated: Type.Boolean({ description: 'Older lines were left out because the response would be too large.' }),
    },
    { $id: 'LogLines' },
  ),
  errors: ['project_not_found', 'deployment_not_found', 'region_unavailable', 'logs_unavailable'],
});
