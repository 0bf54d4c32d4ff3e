import { Type } from 'typebox';
import { declare } from './route.ts';
import { Id, List, Nullable, type Of, Page, pageQuery, Shape, Text, Time } from './shapes.ts';

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
  description: 'Free words to find it by.',
});

export const Project = Shape(
  {
    id: Id('prj', 'The project.'),
    name: Name,
    slug: Slug,
    description: Description,
    labels: Labels,
    environments: List(EnvironmentName, 100, 'Names of its environments.'),
    created_at: Time('When it was made.'),
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
const none = Shape({});

export const listProjects = declare({
  name: 'projects.list',
  method: 'GET',
  path: '/projects',
  tag: 'projects',
  summary: 'List projects',
  scope: 'projects:read',
  params: none,
  query: Shape({ ...pageQuery }),
  body: undefined,
  status: 200,
  response: Page(Project),
  errors: ['invalid_cursor'],
});

export const createProject = declare({
  name: 'projects.create',
  method: 'POST',
  path: '/projects',
  tag: 'projects',
  summary: 'Create a project, with the environment `production`',
  scope: 'projects:write',
  params: none,
  query: none,
  body: CreateProject,
  status: 201,
  response: Project,
  versioned: true,
  errors: ['slug_taken', 'region_unknown'],
});

export const getProject = declare({
  name: 'projects.get',
  method: 'GET',
  path: '/projects/{id}',
  tag: 'projects',
  summary: 'Get a project',
  scope: 'projects:read',
  params: projectParams,
  query: none,
  body: undefined,
  status: 200,
  response: Project,
  versioned: true,
  errors: ['project_not_found'],
});

export const updateProject = declare({
  name: 'projects.update',
  method: 'PATCH',
  path: '/projects/{id}',
  tag: 'projects',
  summary: 'Change a project; what is left out stays as it is',
  scope: 'projects:write',
  params: projectParams,
  query: none,
  body: UpdateProject,
  status: 200,
  response: Project,
  versioned: true,
  errors: ['project_not_found', 'slug_taken'],
});

export const deleteProject = declare({
  name: 'projects.delete',
  method: 'DELETE',
  path: '/projects/{id}',
  tag: 'projects',
  summary: 'Delete a project and everything that belongs to it',
  scope: 'projects:write',
  params: projectParams,
  query: none,
  body: undefined,
  status: 204,
  response: undefined,
  versioned: true,
  errors: ['project_not_found', 'deployment_in_progress'],
});
