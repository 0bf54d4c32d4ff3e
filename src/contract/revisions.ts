import { Type } from 'typebox';
import {
  Choice,
  declare,
  declareCreate,
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
import { Deployment, Image, RevisionId, rolloutChoices } from './deployments.ts';
import { environmentParams, PendingChange, revisionSettings } from './environments.ts';
import { EnvironmentName } from './projects.ts';

const revisionStates = ['pending', 'canary', 'active', 'superseded', 'retired', 'failed', 'rolled_back'] as const;
export type RevisionState = (typeof revisionStates)[number];

export const Revision = Shape(
  {
    id: RevisionId,
    number: Int(1, 9_999_999_999, 'Counted per environment, never reused.'),
    environment: EnvironmentName,
    deployment_id: Id('dpl', 'The deployment that created it.'),
    image: Image('The image as requested.'),
    digest: Nullable(Text(100, 'The digest of the image that runs, or its id where it is `local`.')),
    local: Type.Boolean({ description: 'The image was not pulled: the engine had it, and `digest` is its id there.' }),
    ...revisionSettings,
    state: Choice(revisionStates, 'Its current state.'),
    traffic_percent: Int(0, 100, 'Its share of requests.'),
    restored_from: Nullable(RevisionId),
    rollback_eligible: Type.Boolean({ description: 'Whether a rollback to it is possible.' }),
    ineligible_reason: Nullable(Text(200, 'Why a rollback is not possible.')),
    created_at: Time('When it was created.'),
    activated_at: Nullable(Time('When it got all traffic.')),
    retired_at: Nullable(Time('When it was retired and could no longer be rolled back to.')),
  },
  { $id: 'Revision' },
);
export type Revision = Of<typeof Revision>;

const revisionParams = Shape({ ...environmentParams.properties, r: RevisionId });

export const listRevisions = declareList({
  name: 'revisions.list',
  path: '/projects/{id}/environments/{name}/revisions',
  tag: 'deployments',
  summary: 'List revisions of an environment',
  scope: 'deployments:read',
  params: environmentParams,
  item: Revision,
  errors: ['project_not_found', 'environment_not_found'],
});

export const getRevision = declareGet({
  name: 'revisions.get',
  path: '/projects/{id}/environments/{name}/revisions/{r}',
  tag: 'deployments',
  summary: 'Get a revision',
  scope: 'deployments:read',
  params: revisionParams,
  response: Revision,
  errors: ['project_not_found', 'environment_not_found', 'revision_not_found'],
});

export const compareRevisions = declare({
  name: 'revisions.compare',
  method: 'GET',
  path: '/projects/{id}/environments/{name}/revisions/{r}/changes',
  tag: 'deployments',
  summary: 'Compare a revision with another one, by default the one before: image, settings, names of variables',
  scope: 'deployments:read',
  params: revisionParams,
  query: Shape({ from: Type.Optional(RevisionId) }),
  body: undefined,
  status: 200,
  response: Shape(
    {
      from: Nullable(RevisionId),
      to: RevisionId,
      changes: List(PendingChange, 500, 'What `to` has that `from` has not; all of it where there is none before.'),
    },
    { $id: 'RevisionChanges' },
  ),
  errors: ['project_not_found', 'environment_not_found', 'revision_not_found'],
});

const Rollback = Shape(
  {
    revision: Type.Optional(RevisionId),
    reason: Type.Optional(Nullable(Text(500, 'For people.'))),
  },
  { $id: 'Rollback' },
);

export const rollbackEnvironment = declareCreate({
  name: 'environments.rollback',
  path: '/projects/{id}/environments/{name}/rollback',
  tag: 'deployments',
  summary: 'Roll back to the image, variables and settings of an earlier revision, by default the last superseded one',
  scope: 'deployments:write',
  params: environmentParams,
  body: Rollback,
  bodyOptional: true,
  response: Deployment,
  versioned: true,
  errors: [
    'project_not_found',
    'environment_not_found',
    'revision_not_found',
    'revision_not_eligible',
    'deployment_in_progress',
    'environment_locked',
    'region_unavailable',
  ],
});

const Redeploy = Shape(rolloutChoices, { $id: 'Redeploy' });

export const redeployEnvironment = declareCreate({
  name: 'environments.redeploy',
  path: '/projects/{id}/environments/{name}/redeploy',
  tag: 'deployments',
  summary: 'Deploy the image of the live revision again, by its digest, with the current settings and variables',
  scope: 'deployments:write',
  params: environmentParams,
  body: Redeploy,
  bodyOptional: true,
  response: Deployment,
  versioned: true,
  errors: [
    'project_not_found',
    'environment_not_found',
    'revision_not_eligible',
    'deployment_in_progress',
    'environment_locked',
    'region_unavailable',
  ],
});
