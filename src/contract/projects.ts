import { Type } from 'typebox';
import {
  Choice,
  declareCreate,
  declareDelete,
  declareGet,
  declareList,
  declareUpdate,
  Id,
  List,
  Nullable,
  none,
  type Of,
  Shape,
  Text,
  Time,
  Words,
} from './declare.ts';

/** How well an environment serves its visitors; the worst first. */
export const healthStates = ['down', 'degraded', 'healthy', 'idle'] as const;
export type HealthState = (typeof healthStates)[number];

export const healthFields = {
  state: Choice(
    healthStates,
    '`healthy`: as many healthy instances as it should have; `degraded`: fewer, or some that keep ending; `down`: none, ' +
      'so that visitors get 503; `idle`: nothing is deployed.',
  ),
  since: Time('Since when.'),
  reason: Nullable(Text(2000, 'Why it is degraded or down.')),
};

export const Health = Shape(healthFields, { description: 'Whether it serves its visitors.' });

export const EnvironmentName = Type.String({
  pattern: '^[a-z][a-z0-9-]{0,22}$',
  maxLength: 23,
  description: 'Unique in its project.',
  examples: ['production'],
});

export const RegionName = Type.String({
  pattern: '^[a-z][a-z0-9-]{0,38}$',
  maxLength: 39,
  description: 'One of `GET /v1/regions`.',
  examples: ['local'],
});

const Slug = Type.String({
  pattern: '^[a-z][a-z0-9-]{0,38}$',
  maxLength: 39,
  description: 'Part of the addresses of its environments; unique in its account.',
  examples: ['shop'],
});
const Name = Text(100, 'For people.', 1);
const Description = Nullable(Text(1000, 'For people.'));
const Labels = Type.Array(Text(63, 'A label.', 1), {
  maxItems: 20,
  uniqueItems: true,
  description: 'Labels to find it by.',
});

export const Project = Shape(
  {
    id: Id('prj', 'The project.'),
    name: Name,
    slug: Slug,
    description: Description,
    labels: Labels,
    environments: List(EnvironmentName, 100, 'Names of its environments.'),
    health: Shape(
      { ...healthFields, environment: Nullable(EnvironmentName) },
      { description: 'That of the environment that is worst off; `environment` is null where the project has none.' },
    ),
    created_at: Time('When it was created.'),
    updated_at: Time('When it was last changed.'),
  },
  { $id: 'Project' },
);
export type Project = Of<typeof Project>;

const CreateProject = Shape(
  {
    name: Name,
    slug: Type.Optional(Slug),
    description: Type.Optional(Description),
    labels: Type.Optional(Labels),
    region: Type.Optional(RegionName),
  },
  { $id: 'CreateProject' },
);

const UpdateProject = Shape(
  {
    name: Type.Optional(Name),
    slug: Type.Optional(Slug),
    description: Type.Optional(Description),
    labels: Type.Optional(Labels),
  },
  { $id: 'UpdateProject' },
);

export const projectParams = Shape({ id: Id('prj', 'The project.') });

export const listProjects = declareList({
  name: 'projects.list',
  path: '/projects',
  tag: 'projects',
  summary: 'List projects',
  scope: 'projects:read',
  params: none,
  filters: { search: Type.Optional(Words) },
  item: Project,
});

export const createProject = declareCreate({
  name: 'projects.create',
  path: '/projects',
  tag: 'projects',
  summary: 'Create a project, with the environment `production`',
  scope: 'projects:write',
  params: none,
  body: CreateProject,
  response: Project,
  versioned: true,
  errors: ['slug_taken', 'region_unknown', 'quota_exceeded'],
});

export const getProject = declareGet({
  name: 'projects.get',
  path: '/projects/{id}',
  tag: 'projects',
  summary: 'Get a project',
  scope: 'projects:read',
  params: projectParams,
  response: Project,
  versioned: true,
  errors: ['project_not_found'],
});

export const updateProject = declareUpdate({
  name: 'projects.update',
  path: '/projects/{id}',
  tag: 'projects',
  summary: 'Change a project; omitted fields stay as they are',
  scope: 'projects:write',
  params: projectParams,
  body: UpdateProject,
  response: Project,
  errors: ['project_not_found', 'slug_taken'],
});

export const deleteProject = declareDelete({
  name: 'projects.delete',
  path: '/projects/{id}',
  tag: 'projects',
  summary: 'Delete a project and everything that belongs to it',
  scope: 'projects:write',
  params: projectParams,
  errors: ['project_not_found', 'deployment_in_progress'],
});
