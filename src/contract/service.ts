import { Type } from 'typebox';
import {
  Choice,
  declareGet,
  declareList,
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
import { RegionName } from './projects.ts';

export const Region = Shape(
  {
    name: RegionName,
    engine: Choice(['standin', 'docker', 'kubernetes'], 'The engine that runs its instances.'),
    available: Type.Boolean({ description: 'Whether the engine answered the last check.' }),
    last_checked_at: Nullable(Time('When the engine was last checked.')),
    hosts: Type.Optional(
      List(
        Shape({
          name: Text(300, 'The machine, or where it is reached if a machine has several.'),
          available: Type.Boolean({ description: 'Whether it answered the last check.' }),
        }),
        100,
        'The machines of an engine that is made of several; it is available while one of them is.',
      ),
    ),
  },
  { $id: 'Region' },
);
export type Region = Of<typeof Region>;

const AuditChange = Shape({
  field: Text(200, 'The field, as in `canary.bake_s`.'),
  from: Nullable(Text(500, 'Its value before, as JSON; null: there was none.')),
  to: Nullable(Text(500, 'Its value after, as JSON; null: there is none.')),
});

export const AuditEntry = Shape(
  {
    id: Id('aud', 'The entry.'),
    action: Text(64, 'The operation, as the OpenAPI document names it.'),
    resource: Text(200, 'The path below /v1 of what was changed.'),
    project_id: Nullable(Id('prj', 'The project it belongs to.')),
    token_id: Id('tok', 'The token that made the change.'),
    token_name: Nullable(Text(100, 'The name of that token; null: it is gone.')),
    project_name: Nullable(Text(100, 'The name of the project; null: none, or it is gone.')),
    changes: List(
      AuditChange,
      200,
      'What was changed, field by field, where the request changed something that was there.',
    ),
    request_id: Id('req', 'The request that made the change.'),
    address: Text(64, 'The address the request came from.'),
    created_at: Time('When.'),
  },
  { $id: 'AuditEntry' },
);
export type AuditEntry = Of<typeof AuditEntry>;

export const listRegions = declareList({
  name: 'regions.list',
  path: '/regions',
  tag: 'service',
  summary: 'List regions and whether they answer',
  scope: 'projects:read',
  params: none,
  item: Region,
});

export const listAuditLog = declareList({
  name: 'audit-log.list',
  path: '/audit-log',
  tag: 'service',
  summary: 'List changes made through the API',
  scope: 'audit:read',
  params: none,
  filters: {
    project_id: Type.Optional(Id('prj', 'Only those of this project.')),
    by: Type.Optional(Id('tok', 'Only those of this token.')),
    action: Type.Optional(
      Type.String({
        maxLength: 64,
        pattern: '^[a-z-]+(\\.[a-z-]+)?$',
        description: 'An operation, or all of a kind: `environments`.',
      }),
    ),
    since: Type.Optional(Time('Only those from this time on.')),
    until: Type.Optional(Time('Only those before this time.')),
    search: Type.Optional(Words),
  },
  item: AuditEntry,
});

export const getOpenApi = declareGet({
  name: 'openapi.get',
  path: '/openapi.json',
  tag: 'service',
  summary: 'Get the OpenAPI document',
  scope: 'public',
  params: none,
  response: Type.Object({}, { additionalProperties: true, description: 'OpenAPI 3.1.' }),
});
