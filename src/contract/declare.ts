// What the API is declared with. A route is one declaration: its name, who may call it, its parameters, its response
// and its errors; the server, validation, the OpenAPI document, the docs and the client all use it.
//
// First the building blocks of resources: each string has a maximum length and a pattern or format, and a linter checks
// the OpenAPI document for that. Then the route itself, and last the usual kinds of routes, which declare once what all
// lists, all GETs of one resource and all DELETEs have in common.
import { type Static, type TObject, type TSchema, Type } from 'typebox';
import { idPattern } from '../lib/ids.ts';
import type { ErrorCode } from './errors.ts';
import type { Scope } from './scopes.ts';

export const Id = (prefix: string, description: string) =>
  Type.String({
    pattern: idPattern(prefix),
    maxLength: 40,
    description,
    examples: [`${prefix}_01k9xw3v5qfk2t8m7c4b6d9e0h`],
  });

/** Any printable text; NUL and broken Unicode are refused for every string of a request. */
export const Text = (maxLength: number, description: string, minLength = 0) =>
  Type.String({ minLength, maxLength, pattern: minLength > 0 ? '\\S' : '^', description });

/** What lists are searched for. */
export const Words = Text(
  200,
  'Only what contains each of these words in one of the names that are shown; upper and lower case of ASCII letters are the same. ' +
    'A request searches some thousand items: a page with few items or none may have a `next` that goes on.',
);

export const Time = (description: string) =>
  Type.String({ format: 'date-time', maxLength: 35, description, examples: ['2026-11-15T08:30:00.000Z'] });

export const Int = (minimum: number, maximum: number, description: string, options: Record<string, unknown> = {}) =>
  Type.Integer({ minimum, maximum, format: maximum > 2 ** 31 - 1 ? 'int64' : 'int32', description, ...options });

export const Rate = (description: string) => Type.Number({ minimum: 0, maximum: 1, format: 'double', description });

export const Nullable = <T extends TSchema>(schema: T) => Type.Union([schema, Type.Null()]);

export const Choice = <const T extends string>(values: readonly T[], description: string) =>
  Type.Unsafe<T>({ type: 'string', enum: [...values], description });

export const Shape = <T extends Record<string, TSchema>>(properties: T, options: Record<string, unknown> = {}) =>
  Type.Object(properties, { additionalProperties: false, ...options });

export const List = <T extends TSchema>(items: T, maxItems: number, description: string) =>
  Type.Array(items, { maxItems, description });

const Cursor = Type.String({
  maxLength: 200,
  pattern: '^[A-Za-z0-9_-]+$',
  description: '`page.next` of the previous page, unchanged.',
});

const pageQuery = {
  limit: Type.Optional(Int(1, 100, 'How many items a page has.', { default: 20 })),
  cursor: Type.Optional(Cursor),
};

export const Page = <T extends TSchema>(items: T, maxItems = 100) =>
  Shape({
    data: List(items, maxItems, 'The items of the page, newest first.'),
    page: Shape({
      next: Nullable(Cursor),
      has_more: Type.Boolean({ description: 'True when more items follow.' }),
    }),
  });

export const ErrorBody = Shape(
  {
    error: Shape({
      code: Type.String({ maxLength: 64, pattern: '^[a-z_]+$', description: 'Machine-readable; see `docs`.' }),
      message: Text(2000, 'For people.'),
      status: Int(400, 599, 'Equals the HTTP status.'),
      request_id: Id('req', 'Equals `X-Request-Id`.'),
      docs: Type.String({ format: 'uri', maxLength: 500, description: 'What the code means and what to do.' }),
      details: Type.Optional(
        List(
          Shape({ path: Text(500, 'A field, a parameter or an id.'), message: Text(2000, 'What is wrong with it.') }),
          200,
          'Each cause of the error.',
        ),
      ),
    }),
  },
  { $id: 'Error' },
);

export type Of<T extends TSchema> = Static<T>;

export type Method = 'GET' | 'POST' | 'PATCH' | 'DELETE';

export interface RouteDeclaration<
  P extends TObject = TObject,
  Q extends TObject = TObject,
  B extends TObject | undefined = TObject | undefined,
  R extends TSchema | undefined = TSchema | undefined,
> {
  /** OpenAPI's operationId, and the action in the audit log. */
  name: string;
  method: Method;
  /** Below /v1, with `{name}` for a parameter. */
  path: string;
  tag: Tag;
  summary: string;
  /** Null for any valid token; 'public' if no token is needed. */
  scope: Scope | null | 'public';
  params: P;
  query: Q;
  body: B;
  /** A request without a body counts as one with `{}`. */
  bodyOptional?: boolean;
  status: 200 | 201 | 202 | 204;
  response: R;
  /** Media type of the response if it is not JSON. */
  media?: 'text/event-stream';
  /** The response has an ETag with a version; PATCH and DELETE of that resource respect If-Match. */
  versioned?: boolean;
  /** The response has an ETag, and is 304 for a client that names it in If-None-Match. */
  conditional?: boolean;
  /** In addition to those of every route. */
  errors: readonly ErrorCode[];
}

export const tagCatalogue = {
  overview: 'What all projects do: lists and counts over the whole account.',
  projects: 'Projects and their environments.',
  deployments: 'A deployment turns an image into a revision and moves traffic to it, at once or step by step.',
  alerts: 'Metrics, alert rules, and the alerts that fired.',
  domains: 'Custom domains and their certificates.',
  webhooks: 'Webhook endpoints and their deliveries.',
  events: 'Events, as a list and as a stream.',
  tokens: 'Bearer tokens and what they may do.',
  service: 'The service itself: regions, audit log, this document.',
} as const;

type Tag = keyof typeof tagCatalogue;

export type ParamsOf<R extends RouteDeclaration> = Static<R['params']>;
export type QueryOf<R extends RouteDeclaration> = Static<R['query']>;
export type BodyOf<R extends RouteDeclaration> = R['body'] extends TObject ? Static<R['body']> : undefined;
export type ResponseOf<R extends RouteDeclaration> = R['response'] extends TSchema ? Static<R['response']> : undefined;

export function declare<
  P extends TObject,
  Q extends TObject,
  B extends TObject | undefined,
  R extends TSchema | undefined,
>(declaration: RouteDeclaration<P, Q, B, R>): RouteDeclaration<P, Q, B, R> {
  return declaration;
}

/** Takes nothing. */
export const none = Shape({});

type RouteFields<P extends TObject> = Pick<RouteDeclaration<P>, 'name' | 'path' | 'tag' | 'summary' | 'scope'> & {
  params: P;
  errors?: readonly ErrorCode[];
};

type Filters = Record<string, TSchema>;

/** A list may have pages of its own size. */
const limitOf = ({ limit }: Filters): number => (limit as { maximum?: number } | undefined)?.maximum ?? 100;

/** A page of a list; takes `filters` in addition to limit and cursor. */
export const declareList = <P extends TObject, I extends TSchema, const F extends Filters = Record<never, TSchema>>({
  item,
  filters = {} as F,
  errors = [],
  ...fields
}: RouteFields<P> & { item: I; filters?: F }) =>
  declare({
    ...fields,
    method: 'GET',
    query: Shape({ ...pageQuery, ...filters }),
    body: undefined,
    status: 200,
    response: Page(item, limitOf(filters)),
    errors: [...errors, 'invalid_cursor'],
  });

/** One resource, with its ETag. */
export const declareGet = <P extends TObject, R extends TSchema>(
  fields: RouteFields<P> & { response: R; versioned?: boolean },
) => declare({ errors: [], ...fields, method: 'GET', query: none, body: undefined, status: 200, conditional: true });

/** A POST that creates something. */
export const declareCreate = <P extends TObject, B extends TObject, R extends TSchema>(
  fields: RouteFields<P> & { body: B; bodyOptional?: boolean; response: R; versioned?: boolean },
) => declare({ errors: [], ...fields, method: 'POST', query: none, status: 201 });

export const declareUpdate = <P extends TObject, B extends TObject, R extends TSchema>(
  fields: RouteFields<P> & { body: B; response: R },
) => declare({ errors: [], ...fields, method: 'PATCH', query: none, status: 200, versioned: true });

export const declareDelete = <P extends TObject>(fields: RouteFields<P> & { versioned?: boolean }) =>
  declare({
    errors: [],
    versioned: true,
    ...fields,
    method: 'DELETE',
    query: none,
    body: undefined,
    status: 204,
    response: undefined,
  });

/** A POST without a body: a command on an existing resource. */
export const declareCommand = <P extends TObject, R extends TSchema>(
  fields: RouteFields<P> & { response: R; status?: 200 | 202; versioned?: boolean },
) => declare({ errors: [], status: 200, ...fields, method: 'POST', query: none, body: undefined });
