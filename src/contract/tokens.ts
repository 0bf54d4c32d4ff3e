import { Type } from 'typebox';
import { declare } from './route.ts';
import { scopes } from './scopes.ts';
import { Choice, Id, Nullable, type Of, Page, pageQuery, Shape, Text, Time } from './shapes.ts';

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
  expires_at: Nullable(Time('From then on it is refused.')),
  last_used_at: Nullable(Time('To the minute.')),
  revoked_at: Nullable(Time('From then on it is refused.')),
  created_at: Time('When it was made.'),
};

export const Token = Shape(tokenFields, { $id: 'Token' });
export type Token = Of<typeof Token>;

const NewToken = Shape(
  {
    ...tokenFields,
    token: Type.String({ maxLength: 200, pattern: '^[!-~]+$', description: 'The secret. Shown this once.' }),
  },
  { $id: 'NewToken' },
);

const CreateToken = Shape(
  {
    name: Text(100, 'For people.', 1),
    scopes: Scopes,
    project_ids: Type.Optional(ProjectIds),
    expires_at: Type.Optional(Nullable(Time('In the future; null or left out: never.'))),
  },
  { $id: 'CreateToken' },
);

const params = Shape({ tok: Id('tok', 'The token.') });
const none = Shape({});

export const listTokens = declare({
  name: 'tokens.list',
  method: 'GET',
  path: '/tokens',
  tag: 'tokens',
  summary: 'List tokens',
  scope: 'tokens:read',
  params: none,
  query: Shape({ ...pageQuery }),
  body: undefined,
  status: 200,
  response: Page(Token),
  errors: ['invalid_cursor'],
});

export const createToken = declare({
  name: 'tokens.create',
  method: 'POST',
  path: '/tokens',
  tag: 'tokens',
  summary: 'Make a token; its secret is shown this once',
  scope: 'tokens:write',
  params: none,
  query: none,
  body: CreateToken,
  status: 201,
  response: NewToken,
  versioned: true,
  errors: ['quota_exceeded', 'project_not_found'],
});

export const getToken = declare({
  name: 'tokens.get',
  method: 'GET',
  path: '/tokens/{tok}',
  tag: 'tokens',
  summary: 'Get a token',
  scope: 'tokens:read',
  params,
  query: none,
  body: undefined,
  status: 200,
  response: Token,
  versioned: true,
  errors: ['token_not_found'],
});

export const revokeToken = declare({
  name: 'tokens.revoke',
  method: 'DELETE',
  path: '/tokens/{tok}',
  tag: 'tokens',
  summary: 'Revoke a token, at once and for ever',
  scope: 'tokens:write',
  params,
  query: none,
  body: undefined,
  status: 204,
  response: undefined,
  versioned: true,
  errors: ['token_not_found'],
});

export const whoAmI = declare({
  name: 'token.get',
  method: 'GET',
  path: '/token',
  tag: 'tokens',
  summary: 'Get the token of this request',
  scope: null,
  params: none,
  query: none,
  body: undefined,
  status: 200,
  response: Token,
  versioned: true,
  errors: [],
});
