import { Type } from 'typebox';
import { severities } from './alert-rules.ts';
import { Alert, alertStates } from './alerts.ts';
import {
  Choice,
  declareGet,
  declareList,
  Id,
  Int,
  List,
  Nullable,
  none,
  type Of,
  Rate,
  Shape,
  Text,
  Words,
} from './declare.ts';
import { Deployment, deploymentStates, Image, RevisionId } from './deployments.ts';
import { Domain } from './domains.ts';
import { EnvironmentName, Health, healthFields, healthStates, Project } from './projects.ts';

const whose = {
  project_id: Id('prj', 'Its project.'),
  project_name: Text(100, 'The name of its project.'),
};

const of = Deployment.properties;

export const DeploymentSummary = Shape(
  {
    id: of.id,
    ...whose,
    environment: of.environment,
    kind: of.kind,
    revision: of.revision,
    previous_revision: of.previous_revision,
    image: of.image,
    strategy: of.strategy,
    state: of.state,
    canary: Nullable(
      Shape({
        phase: Choice(['baking', 'paused', 'awaiting_approval'], 'Observed, paused, or waiting for `promote`.'),
        step: Int(1, 21, 'The number of the step, from 1.'),
        percent: Int(1, 99, 'Percentage of requests that the canary gets.'),
      }),
    ),
    failure: Nullable(Shape({ code: Text(64, 'Why.'), message: Text(2000, 'For people.') })),
    note: of.note,
    created_by: of.created_by,
    created_by_name: Nullable(Text(100, 'The name of that token; null: it is gone.')),
    created_at: of.created_at,
    finished_at: of.finished_at,
  },
  { $id: 'DeploymentSummary' },
);
export type DeploymentSummary = Of<typeof DeploymentSummary>;

/** How many slices of the last hour a sparkline has. */
export const sparkPoints = 30;

const EnvironmentOverview = Shape(
  {
    name: EnvironmentName,
    url: Type.String({ format: 'uri', maxLength: 500, description: 'The address of its live revision.' }),
    health: Health,
    locked: Type.Boolean({ description: 'Whether deployments are blocked.' }),
    active_revision: Nullable(RevisionId),
    image: Nullable(Image('The image of the active revision.')),
    traffic: List(
      Shape({ revision: RevisionId, percent: Int(0, 100, 'Its share of requests.') }),
      10,
      'How requests are split between revisions.',
    ),
    last_deployment: Nullable(DeploymentSummary),
    firing_alerts: Nullable(Int(0, 1_000_000, 'How many alerts are firing; null: the token may not see alerts.')),
    requests: Nullable(
      Shape(
        {
          rate: Type.Number({ minimum: 0, maximum: 1e9, format: 'double', description: 'Requests a second.' }),
          error_rate: Nullable(Rate('Share of 5xx answers; null without requests.')),
          rates: List(
            Type.Number({ minimum: 0, maximum: 1e9, format: 'double', description: 'Requests a second.' }),
            sparkPoints,
            'Each slice of the last hour, oldest first.',
          ),
        },
        { description: 'The last four minutes, and the last hour; null: the token may not see metrics.' },
      ),
    ),
  },
  { $id: 'EnvironmentOverview' },
);

export const ProjectOverview = Shape(
  {
    id: Project.properties.id,
    name: Project.properties.name,
    slug: Project.properties.slug,
    labels: Project.properties.labels,
    health: Project.properties.health,
    environments: List(EnvironmentOverview, 100, 'Its environments, the one that is worst off first.'),
    created_at: Project.properties.created_at,
  },
  { $id: 'ProjectOverview' },
);
export type ProjectOverview = Of<typeof ProjectOverview>;
export type EnvironmentOverview = Of<typeof EnvironmentOverview>;

export const overviewSorts = ['newest', 'name', 'health', 'deployed'] as const;
export type OverviewSort = (typeof overviewSorts)[number];

const count = (what: string) => Int(0, 1_000_000_000, what);

export const Overview = Shape(
  {
    projects: count('Projects that the token may see.'),
    health: Shape({
      down: count('Projects whose worst environment is down.'),
      degraded: count('Those that are degraded at worst.'),
      healthy: count('Those that are healthy at worst.'),
      idle: count('Those that run nothing.'),
    }),
    firing_alerts: Nullable(count('Alerts that are firing; null: the token may not see alerts.')),
    in_progress: Nullable(count('Deployments that have not ended; null: the token may not see deployments.')),
    incidents: List(
      Shape({ ...whose, environment: EnvironmentName, ...healthFields }),
      20,
      'Environments that are down or degraded, the worst first, at most 20.',
    ),
  },
  { $id: 'Overview' },
);
export type Overview = Of<typeof Overview>;

export const getOverview = declareGet({
  name: 'overview.get',
  path: '/overview',
  tag: 'overview',
  summary: 'Count projects by health, firing alerts and deployments in progress',
  scope: 'projects:read',
  params: none,
  response: Overview,
});

export const listOverview = declareList({
  name: 'overview.projects',
  path: '/overview/projects',
  tag: 'overview',
  summary:
    'List projects with what each environment runs: health, live revision, traffic, requests, last deployment, alerts',
  scope: 'projects:read',
  params: none,
  filters: {
    search: Type.Optional(Words),
    health: Type.Optional(Choice(healthStates, 'Only projects whose worst environment is in this state.')),
    sort: Type.Optional(
      Choice(
        overviewSorts,
        '`newest` (default); `name`; `health`: the worst first; `deployed`: the latest deployment first.',
      ),
    ),
  },
  item: ProjectOverview,
});

export const listAllDeployments = declareList({
  name: 'overview.deployments',
  path: '/deployments',
  tag: 'overview',
  summary: 'List deployments of all projects',
  scope: 'deployments:read',
  params: none,
  filters: {
    project_id: Type.Optional(Id('prj', 'Only those of this project.')),
    environment: Type.Optional(EnvironmentName),
    state: Type.Optional(Choice(deploymentStates, 'Only those in this state.')),
    search: Type.Optional(Words),
  },
  item: DeploymentSummary,
});

export const AccountAlert = Shape({ ...Alert.properties, ...whose }, { $id: 'AccountAlert' });
export type AccountAlert = Of<typeof AccountAlert>;

export const listAllAlerts = declareList({
  name: 'overview.alerts',
  path: '/alerts',
  tag: 'overview',
  summary: 'List alerts of all projects',
  scope: 'alerts:read',
  params: none,
  filters: {
    state: Type.Optional(Choice(alertStates, 'Only those in this state.')),
    severity: Type.Optional(Choice(severities, 'Only those of this severity.')),
    search: Type.Optional(Words),
  },
  item: AccountAlert,
});

export const AccountDomain = Shape({ ...Domain.properties, ...whose }, { $id: 'AccountDomain' });
export type AccountDomain = Of<typeof AccountDomain>;

export const listAllDomains = declareList({
  name: 'overview.domains',
  path: '/domains',
  tag: 'overview',
  summary: 'List domains of all projects',
  scope: 'domains:read',
  params: none,
  filters: { search: Type.Optional(Words) },
  item: AccountDomain,
});
