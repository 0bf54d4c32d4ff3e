import { Type } from 'typebox';
import {
  Choice,
  declareCreate,
  declareDelete,
  declareGet,
  declareList,
  declareUpdate,
  Id,
  Int,
  Nullable,
  type Of,
  Shape,
  Text,
  Time,
} from './declare.ts';
import { EnvironmentName, projectParams } from './projects.ts';

/** What a rule measures. `external` measures nothing: another system, such as Prometheus, reports when it fires. */
export const alertMetrics = [
  'error_rate',
  'p95_ms',
  'request_rate',
  'healthy_instances',
  'restarts',
  'certificate_days_left',
  'external',
] as const;
export type AlertMetric = (typeof alertMetrics)[number];

const comparators = ['gt', 'lt'] as const;
export type Comparator = (typeof comparators)[number];

export const severities = ['info', 'warning', 'critical'] as const;
export type Severity = (typeof severities)[number];

export const onCanaryChoices = ['abort', 'none'] as const;
export type OnCanary = (typeof onCanaryChoices)[number];

const Hostname = Type.String({
  maxLength: 253,
  pattern: '^[a-z0-9.-]+$',
  description: 'The domain whose certificate `certificate_days_left` checks; null: every domain of the environment.',
});

const fields = {
  name: Text(100, 'For people; unique in its environment.', 1),
  metric: Choice(alertMetrics, 'What is measured.'),
  comparator: Choice(comparators, 'Which side of the threshold is a problem: above (`gt`) or below (`lt`).'),
  threshold: Type.Number({
    minimum: 0,
    maximum: 1e9,
    format: 'double',
    description: 'The limit that `comparator` compares with.',
  }),
  window_s: Int(10, 86_400, 'How many seconds of measurements are evaluated.'),
  for_s: Int(0, 86_400, 'Seconds the condition must hold before the alert fires, and be gone before it is resolved.'),
  severity: Choice(severities, 'How serious it is.'),
  on_canary: Choice(onCanaryChoices, '`abort`: an alert that fires while a canary runs aborts it.'),
  enabled: Type.Boolean({ description: 'Whether the rule is evaluated.' }),
};

export const AlertRule = Shape(
  {
    id: Id('rul', 'The rule.'),
    environment: EnvironmentName,
    hostname: Nullable(Hostname),
    ...fields,
    created_at: Time('When it was created.'),
    updated_at: Time('When it was last changed.'),
  },
  { $id: 'AlertRule' },
);
export type AlertRule = Of<typeof AlertRule>;

const CreateAlertRule = Shape(
  {
    environment: EnvironmentName,
    name: fields.name,
    metric: fields.metric,
    comparator: Type.Optional(fields.comparator),
    threshold: Type.Optional(fields.threshold),
    hostname: Type.Optional(Nullable(Hostname)),
    window_s: Type.Optional(Int(10, 86_400, 'Default 60.')),
    for_s: Type.Optional(Int(0, 86_400, 'Default 0.')),
    severity: Type.Optional(Choice(severities, 'Default `warning`.')),
    on_canary: Type.Optional(Choice(onCanaryChoices, 'Default `none`.')),
    enabled: Type.Optional(fields.enabled),
  },
  { $id: 'CreateAlertRule' },
);
export type CreateAlertRule = Of<typeof CreateAlertRule>;

const UpdateAlertRule = Shape(
  {
    name: Type.Optional(fields.name),
    comparator: Type.Optional(fields.comparator),
    threshold: Type.Optional(fields.threshold),
    window_s: Type.Optional(fields.window_s),
    for_s: Type.Optional(fields.for_s),
    severity: Type.Optional(fields.severity),
    on_canary: Type.Optional(fields.on_canary),
    enabled: Type.Optional(fields.enabled),
  },
  { $id: 'UpdateAlertRule', minProperties: 1 },
);
export type UpdateAlertRule = Of<typeof UpdateAlertRule>;

const params = Shape({ ...projectParams.properties, rul: Id('rul', 'The rule.') });

export const listAlertRules = declareList({
  name: 'alert-rules.list',
  path: '/projects/{id}/alert-rules',
  tag: 'alerts',
  summary: 'List alert rules of a project',
  scope: 'alerts:read',
  params: projectParams,
  filters: { environment: Type.Optional(EnvironmentName) },
  item: AlertRule,
  errors: ['project_not_found'],
});

export const createAlertRule = declareCreate({
  name: 'alert-rules.create',
  path: '/projects/{id}/alert-rules',
  tag: 'alerts',
  summary: 'Create an alert rule',
  scope: 'alerts:write',
  params: projectParams,
  body: CreateAlertRule,
  response: AlertRule,
  versioned: true,
  errors: ['project_not_found', 'environment_unknown', 'alert_rule_exists', 'quota_exceeded'],
});

export const getAlertRule = declareGet({
  name: 'alert-rules.get',
  path: '/projects/{id}/alert-rules/{rul}',
  tag: 'alerts',
  summary: 'Get an alert rule',
  scope: 'alerts:read',
  params,
  response: AlertRule,
  versioned: true,
  errors: ['project_not_found', 'alert_rule_not_found'],
});

export const updateAlertRule = declareUpdate({
  name: 'alert-rules.update',
  path: '/projects/{id}/alert-rules/{rul}',
  tag: 'alerts',
  summary: 'Change an alert rule',
  scope: 'alerts:write',
  params,
  body: UpdateAlertRule,
  response: AlertRule,
  errors: ['project_not_found', 'alert_rule_not_found', 'alert_rule_exists'],
});

export const deleteAlertRule = declareDelete({
  name: 'alert-rules.delete',
  path: '/projects/{id}/alert-rules/{rul}',
  tag: 'alerts',
  summary: 'Delete an alert rule and resolve its firing alerts',
  scope: 'alerts:write',
  params,
  errors: ['project_not_found', 'alert_rule_not_found'],
});
