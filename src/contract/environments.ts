import { Type } from 'typebox';
import {
  Choice,
  declareCreate,
  declareDelete,
  declareGet,
  declareList,
  declareUpdate,
  Int,
  List,
  Nullable,
  type Of,
  Rate,
  Shape,
  Text,
  Time,
} from './declare.ts';
import { EnvironmentName, Health, projectParams, RegionName } from './projects.ts';

const healthCheckFields = {
  path: Nullable(
    Type.String({
      pattern: '^/[!-~]*$',
      maxLength: 500,
      description: 'HTTP 200 to 399 is healthy; null: a TCP connect is enough.',
    }),
  ),
  interval_s: Int(1, 300, 'Seconds between two probes.'),
  timeout_s: Int(1, 60, 'Seconds a probe may take.'),
  healthy_after: Int(1, 10, 'Good probes in a row until an instance counts as healthy.'),
  unhealthy_after: Int(1, 10, 'Bad probes in a row until an instance counts as unhealthy.'),
  start_timeout_s: Int(1, 3600, 'Seconds a new instance has to become healthy.'),
};

const resourceFields = {
  memory_mb: Int(16, 262_144, 'MiB of memory for each instance. One that needs more is killed.'),
  cpus: Type.Number({
    minimum: 0.05,
    maximum: 64,
    multipleOf: 0.01,
    format: 'double',
    description: 'CPUs for each instance, in hundredths. One that needs more is slowed down.',
  }),
};

const canaryFields = {
  advance: Choice(['auto', 'manual'], 'auto: by analysis; manual: waits for promote at each step.'),
  bake_s: Int(1, 86_400, 'Seconds that each step is observed after its warm-up, before the next.'),
  steps: List(
    Int(1, 99, 'Percent.'),
    20,
    'Traffic of the further steps after the deployment’s `canary_percent`, in rising order.',
  ),
  min_requests: Int(0, 1_000_000, 'Minimum requests to the canary before its measurements count.'),
  max_error_rate: Rate('Share of 5xx answers above which the canary fails.'),
  max_client_error_rate: Nullable(Rate('Share of 4xx answers above which the canary fails; null: shown, not judged.')),
  max_p95_ms: Nullable(Int(1, 600_000, 'Latency above which the canary fails; null: not checked.')),
  approval_timeout_s: Int(1, 2_592_000, 'Seconds `manual` waits for promote.'),
  warmup_s: Int(0, 3600, 'Seconds at the beginning of each step, before `bake_s`, whose latency does not count.'),
  on_inconclusive: Choice(
    ['promote', 'abort', 'hold'],
    'What happens at the end of a step whose requests prove nothing.',
  ),
};

const partial = <T extends Record<string, Type.TSchema>>(fields: T) =>
  Type.Partial(Shape(fields), { additionalProperties: false });

const VariableName = Type.String({ pattern: '^[A-Za-z_][A-Za-z0-9_]{0,127}$', maxLength: 128, description: 'A name.' });
const Variables = Type.Record(
  Type.String({ pattern: '^[A-Za-z_][A-Za-z0-9_]{0,127}$' }),
  Nullable(Type.String({ maxLength: 65_536, pattern: '^', description: 'A value; null removes the variable.' })),
  {
    maxProperties: 200,
    additionalProperties: false,
    description: 'Passed to every instance of the next revision. Values are write-only.',
  },
);

export const PendingChange = Shape(
  {
    field: Text(200, 'The setting, as in `health_check.path`, or `variables.NAME`.'),
    change: Choice(['added', 'changed', 'removed'], 'What happens to it.'),
    from: Nullable(Text(600, 'Its value in the revision. Always null for a variable, whose value is never shown.')),
    to: Nullable(Text(600, 'Its value from the next deployment on. Always null for a variable.')),
  },
  { $id: 'PendingChange' },
);

const settings = {
  replicas: Int(1, 20, 'Instances of a live revision.'),
  port: Int(
    1,
    65_535,
    'The port on which an instance listens; passed to it as `PORT`. Where it was never set: the only port that the image ' +
      'exposes, else 8080.',
  ),
  auto_rollback: Type.Boolean({ description: 'Undo a canary that fails its analysis; false: pause it instead.' }),
  retention: Int(1, 100, 'Superseded revisions that stay eligible for rollback.'),
  drain_s: Int(0, 3600, 'Seconds an instance may finish its requests before it is stopped.'),
};

/** What a revision keeps of its environment, besides its variables. */
export const revisionSettings = {
  port: settings.port,
  health_check: Shape(healthCheckFields),
  resources: Shape(resourceFields),
};

export const Environment = Shape(
  {
    name: EnvironmentName,
    region: RegionName,
    url: Type.String({ format: 'uri', maxLength: 500, description: 'The address of its live revision.' }),
    ...settings,
    ...revisionSettings,
    variables: List(VariableName, 200, 'Names of its variables.'),
    canary: Shape(canaryFields),
    locked: Nullable(Shape({ reason: Text(500, 'Why.'), at: Time('Since when.') })),
    health: Health,
    active_revision: Nullable(
      Type.String({ pattern: '^r[0-9]+$', maxLength: 20, description: 'The revision that serves it.' }),
    ),
    traffic: List(
      Shape({
        revision: Type.String({ pattern: '^r[0-9]+$', maxLength: 20, description: 'A revision.' }),
        percent: Int(0, 100, 'Its share of requests.'),
      }),
      10,
      'How requests are split between revisions.',
    ),
    in_progress_deployment: Nullable(
      Type.String({ pattern: '^dpl_', maxLength: 40, description: 'The deployment that has not ended.' }),
    ),
    pending_changes: List(
      PendingChange,
      500,
      'Settings that differ from those of the live revision, or of the one that is being rolled out. They apply with the next deployment.',
    ),
    created_at: Time('When it was created.'),
    updated_at: Time('When it was last changed.'),
  },
  { $id: 'Environment' },
);
export type Environment = Of<typeof Environment>;
export type HealthCheck = Environment['health_check'];
export type CanaryPolicy = Environment['canary'];
export type Resources = Environment['resources'];
export type PendingChange = Of<typeof PendingChange>;

export const environmentDefaults = {
  replicas: 1,
  port: 8080,
  auto_rollback: true,
  retention: 10,
  drain_s: 10,
  health_check: {
    path: null,
    interval_s: 2,
    timeout_s: 2,
    healthy_after: 2,
    unhealthy_after: 3,
    start_timeout_s: 60,
  } as HealthCheck,
  resources: { memory_mb: 512, cpus: 1 } as Resources,
  canary: {
    advance: 'auto',
    bake_s: 60,
    steps: [],
    min_requests: 20,
    max_error_rate: 0.05,
    max_client_error_rate: null,
    max_p95_ms: null,
    approval_timeout_s: 86_400,
    warmup_s: 60,
    on_inconclusive: 'promote',
  } as CanaryPolicy,
};

const changeable = {
  replicas: Type.Optional(settings.replicas),
  port: Type.Optional(settings.port),
  auto_rollback: Type.Optional(settings.auto_rollback),
  retention: Type.Optional(settings.retention),
  drain_s: Type.Optional(settings.drain_s),
  variables: Type.Optional(Variables),
  health_check: Type.Optional(partial(healthCheckFields)),
  resources: Type.Optional(partial(resourceFields)),
  canary: Type.Optional(partial(canaryFields)),
  locked: Type.Optional(
    Nullable(Shape({ reason: Text(500, 'Why no one may deploy here.', 1) }, { description: 'null unlocks.' })),
  ),
};

const CreateEnvironment = Shape(
  { name: EnvironmentName, region: Type.Optional(RegionName), ...changeable },
  { $id: 'CreateEnvironment' },
);
export const UpdateEnvironment = Shape({ ...changeable }, { $id: 'UpdateEnvironment' });
export type EnvironmentChanges = Of<typeof UpdateEnvironment>;

export const environmentParams = Shape({ ...projectParams.properties, name: EnvironmentName });

export const listEnvironments = declareList({
  name: 'environments.list',
  path: '/projects/{id}/environments',
  tag: 'projects',
  summary: 'List environments of a project',
  scope: 'projects:read',
  params: projectParams,
  item: Environment,
  errors: ['project_not_found'],
});

export const createEnvironment = declareCreate({
  name: 'environments.create',
  path: '/projects/{id}/environments',
  tag: 'projects',
  summary: 'Create an environment',
  scope: 'projects:write',
  params: projectParams,
  body: CreateEnvironment,
  response: Environment,
  versioned: true,
  errors: ['project_not_found', 'environment_exists', 'region_unknown', 'quota_exceeded'],
});

export const getEnvironment = declareGet({
  name: 'environments.get',
  path: '/projects/{id}/environments/{name}',
  tag: 'projects',
  summary: 'Get an environment',
  scope: 'projects:read',
  params: environmentParams,
  response: Environment,
  versioned: true,
  errors: ['project_not_found', 'environment_not_found'],
});

export const updateEnvironment = declareUpdate({
  name: 'environments.update',
  path: '/projects/{id}/environments/{name}',
  tag: 'projects',
  summary: 'Change an environment; nested objects merge, and a variable set to null is removed',
  scope: 'projects:write',
  params: environmentParams,
  body: UpdateEnvironment,
  response: Environment,
  errors: ['project_not_found', 'environment_not_found', 'quota_exceeded'],
});

export const deleteEnvironment = declareDelete({
  name: 'environments.delete',
  path: '/projects/{id}/environments/{name}',
  tag: 'projects',
  summary: 'Delete an environment and what runs in it',
  scope: 'projects:write',
  params: environmentParams,
  errors: ['project_not_found', 'environment_not_found', 'deployment_in_progress'],
});
