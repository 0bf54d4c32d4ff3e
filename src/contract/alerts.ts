import { Type } from 'typebox';
import { severities } from './alert-rules.ts';
import {
  Choice,
  declare,
  declareGet,
  declareList,
  Id,
  Int,
  List,
  Nullable,
  type Of,
  Shape,
  Text,
  Time,
} from './declare.ts';
import { RevisionId } from './deployments.ts';
import { EnvironmentName, projectParams } from './projects.ts';

export const alertStates = ['firing', 'resolved'] as const;
export type AlertState = (typeof alertStates)[number];

export const Alert = Shape(
  {
    id: Id('alr', 'The alert.'),
    rule_id: Id('rul', 'The rule whose condition held.'),
    name: Text(100, 'The name its rule had when it fired.'),
    severity: Choice(severities, 'How serious it is.'),
    message: Text(2000, 'A description of the problem.'),
    environment: EnvironmentName,
    revision: Nullable(RevisionId),
    hostname: Nullable(Text(253, 'The domain that the alert is about, if any.')),
    state: Choice(alertStates, 'Whether the condition still holds.'),
    value: Type.Number({ minimum: -1e12, maximum: 1e12, format: 'double', description: 'What was measured.' }),
    fired_at: Time('When it began.'),
    resolved_at: Nullable(Time('When it ended.')),
  },
  { $id: 'Alert' },
);
export type Alert = Of<typeof Alert>;

const alertmanagerLabels = Type.Record(
  Type.String({ pattern: '^[A-Za-z_][A-Za-z0-9_]*$' }),
  Type.String({ maxLength: 20_000, pattern: '^', description: 'A value.' }),
  { maxProperties: 200, description: 'Labels or annotations.' },
);

/** What Alertmanager's webhook_config sends. Fields added by later versions are accepted. */
const AlertmanagerMessage = Type.Object(
  {
    version: Text(10, 'Of the message: `4`.'),
    status: Choice(alertStates, 'Of the group.'),
    alerts: List(
      Type.Object(
        {
          status: Choice(alertStates, 'Whether the condition still holds.'),
          labels: alertmanagerLabels,
          annotations: alertmanagerLabels,
          startsAt: Time('When it began.'),
          endsAt: Time('When it ended, or when it counts as ended.'),
          fingerprint: Type.String({ maxLength: 64, pattern: '^[0-9a-f]+$', description: 'Of its labels.' }),
        },
        { additionalProperties: true, maxProperties: 50 },
      ),
      1000,
      'Each alert of the group.',
    ),
  },
  { $id: 'AlertmanagerMessage', additionalProperties: true, maxProperties: 50 },
);
export type AlertmanagerMessage = Of<typeof AlertmanagerMessage>;

const AlertmanagerReceipt = Shape(
  {
    fired: Int(0, 1000, 'Alerts that fired with this message.'),
    resolved: Int(0, 1000, 'Alerts that ended with this message.'),
  },
  { $id: 'AlertmanagerReceipt' },
);

export const listAlerts = declareList({
  name: 'alerts.list',
  path: '/projects/{id}/alerts',
  tag: 'alerts',
  summary: 'List alerts of a project',
  scope: 'alerts:read',
  params: projectParams,
  filters: {
    environment: Type.Optional(EnvironmentName),
    state: Type.Optional(Choice(alertStates, 'Only those in this state.')),
    rule_id: Type.Optional(Id('rul', 'Only those of this rule.')),
  },
  item: Alert,
  errors: ['project_not_found'],
});

export const getAlert = declareGet({
  name: 'alerts.get',
  path: '/projects/{id}/alerts/{alr}',
  tag: 'alerts',
  summary: 'Get an alert',
  scope: 'alerts:read',
  params: Shape({ ...projectParams.properties, alr: Id('alr', 'The alert.') }),
  response: Alert,
  errors: ['project_not_found', 'alert_not_found'],
});

export const receiveAlertmanager = declare({
  name: 'alerts.alertmanager',
  method: 'POST',
  path: '/projects/{id}/alerts/alertmanager',
  tag: 'alerts',
  summary: 'Receive a Prometheus Alertmanager notification; its alerts fire and resolve here too',
  scope: 'alerts:write',
  params: projectParams,
  query: Shape({ environment: Type.Optional(EnvironmentName) }),
  body: AlertmanagerMessage,
  status: 200,
  response: AlertmanagerReceipt,
  errors: ['project_not_found', 'environment_unknown', 'quota_exceeded'],
});
