import { Type } from 'typebox';
import {
  Choice,
  declare,
  declareCreate,
  declareGet,
  declareList,
  Id,
  Nullable,
  none,
  type Of,
  Shape,
  Text,
  Time,
  Words,
} from './declare.ts';
import { scopes } from './scopes.ts';

const Scopes = Type.Array(Choice(scopes, 'A scope.'), {
  minItems: 1,
  maxItems: scopes.length,
  uniqueItems: true,
  description: 'What the token may do.',
});
const ProjectIds = Nullable(
  Type.Array(Id('prj', 'A project.'), {
    minItems: 1,
    maxItems: 100,
    uniqueItems: true,
    description: 'The only projects the token may see; null: all of the account.',
  }),
);

const tokenFields = {
  id: Id('tok', 'The token, not its secret.'),
  name: Text(100, 'For people.'),
  scopes: Scopes,
  project_ids: ProjectIds,
  parent_id: Nullable(Id('tok', 'The token that made it; null: it was made without one, or before this was recorded.')),
  expires_at: Nullable(Time('The token is refused from this time on.')),
  last_used_at: Nullable(Time('Accurate to the minute.')),
  revoked_at: Nullable(Time('The token is refused from this time on.')),
  created_at: Time('When it was created.'),
};

export const Token = Shape(tokenFields, { $id: 'Token' });
export type Token = Of<typeof Token>;

const NewToken = Shape(
  {
    ...tokenFields,
    token: Type.String({ maxLength: 200, pattern: '^[!-~]+$', description: 'The secret. Shown only once.' }),
  },
  { $id: 'NewToken' },
);

const CreateToken = Shape(
  {
    name: Text(100, 'For people.', 1),
    scopes: Scopes,
    project_ids: Type.Optional(ProjectIds),
    expires_at: Type.Optional(
      Nullable(
        Time('In the future; null or left out: never. No later than the token that makes it: a later time is cut.'),
      ),
    ),
  },
  { $id: 'CreateToken' },
);

const params = Shape({ tok: Id('tok', 'The token.') });

export const listTokens = declareList({
  name: 'tokens.list',
  path: '/tokens',
  tag: 'tokens',
  summary: 'List tokens',
  scope: 'tokens:read',
  params: none,
  filters: { search: Type.Optional(Words) },
  item: Token,
});

export const createToken = declareCreate({
  name: 'tokens.create',
  path: '/tokens',
  tag: 'tokens',
  summary: 'Create a token; its secret is shown only once',
  scope: 'tokens:write',
  params: none,
  body: CreateToken,
  response: NewToken,
  versioned: true,
  errors: ['quota_exceeded', 'project_not_found'],
});

export const getToken = declareGet({
  name: 'tokens.get',
  path: '/tokens/{tok}',
  tag: 'tokens',
  summary: 'Get a token',
  scope: 'tokens:read',
  params,
  response: Token,
  versioned: true,
  errors: ['token_not_found'],
});

export const revokeToken = declare({
  name: 'tokens.revoke',
  method: 'DELETE',
  path: '/tokens/{tok}',
  tag: 'tokens',
  summary: 'Revoke a token with no more rights than yours, immediately and permanently',
  scope: 'tokens:write',
  params,
  query: Shape({
    cascade: Type.Optional(
      Choice(['true', 'false'], '`true`: also all tokens created with it, directly or indirectly.'),
    ),
  }),
  body: undefined,
  status: 204,
  response: undefined,
  versioned: true,
  errors: ['token_not_found'],
});

export const whoAmI = declareGet({
  name: 'token.get',
  path: '/token',
  tag: 'tokens',
  summary: 'Get the token of this request',
  scope: null,
  params: none,
  response: Token,
  versioned: true,
});
