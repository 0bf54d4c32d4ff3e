import { Type } from 'typebox';
import {
  declareCreate,
  declareDelete,
  declareGet,
  declareList,
  Id,
  Nullable,
  none,
  type Of,
  Shape,
  Text,
  Time,
} from './declare.ts';

const Host = Type.String({
  minLength: 1,
  maxLength: 260,
  pattern: '^[a-z0-9]([a-z0-9.-]*[a-z0-9])?(:[0-9]{1,5})?$',
  description: 'The registry, as image references name it, with its port if it has one; `docker.io` for Docker Hub.',
  examples: ['ghcr.io'],
});

const Username = Text(255, 'The user to log in as.', 1);

const ProjectIds = Nullable(
  Type.Array(Id('prj', 'A project.'), {
    minItems: 1,
    maxItems: 100,
    uniqueItems: true,
    description: 'The only projects whose images are pulled with it; null: all of the account.',
  }),
);

export const Registry = Shape(
  {
    id: Id('reg', 'The login.'),
    host: Host,
    username: Username,
    project_ids: ProjectIds,
    created_at: Time('When it was created.'),
  },
  { $id: 'Registry' },
);
export type Registry = Of<typeof Registry>;

const CreateRegistry = Shape(
  {
    host: Host,
    username: Username,
    password: Text(4096, 'The password, or a token of the registry. It is never shown.', 1),
    project_ids: Type.Optional(ProjectIds),
  },
  { $id: 'CreateRegistry' },
);

export const listRegistries = declareList({
  name: 'registries.list',
  path: '/registries',
  tag: 'projects',
  summary: 'List registry logins, without their passwords',
  scope: 'projects:read',
  params: none,
  item: Registry,
});

export const createRegistry = declareCreate({
  name: 'registries.create',
  path: '/registries',
  tag: 'projects',
  summary: 'Add a registry login, used to pull images of this account',
  scope: 'projects:write',
  params: none,
  body: CreateRegistry,
  response: Registry,
  versioned: true,
  errors: ['project_not_found', 'quota_exceeded'],
});

const params = Shape({ reg: Id('reg', 'The login.') });

export const getRegistry = declareGet({
  name: 'registries.get',
  path: '/registries/{reg}',
  tag: 'projects',
  summary: 'Get a registry login, without its password',
  scope: 'projects:read',
  params,
  response: Registry,
  versioned: true,
  errors: ['registry_not_found'],
});

export const deleteRegistry = declareDelete({
  name: 'registries.delete',
  path: '/registries/{reg}',
  tag: 'projects',
  summary: 'Remove a registry login',
  scope: 'projects:write',
  params,
  errors: ['registry_not_found'],
});
