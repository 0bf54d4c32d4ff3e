// The OpenAPI 3.1 document, generated from the same declarations that validate requests: operations, webhooks, responses,
// and the TypeBox schemas as JSON schemas.
import type { TObject, TSchema } from 'typebox';
import { routes } from '../contract/api.ts';
import { ErrorBody, type RouteDeclaration, tagCatalogue } from '../contract/declare.ts';
import { type ErrorCode, errorCatalogue } from '../contract/errors.ts';
import { eventCatalogue, eventKinds, eventSchemas } from '../contract/events.ts';

export function openApiDocument(version: string): Json {
  const schemas: Json = {};
  const paths: Record<string, Json> = {};
  for (const route of routes) {
    paths[route.path] ??= {};
    paths[route.path]![route.method.toLowerCase()] = operation(route, schemas);
  }
  const errorSchema = refer(ErrorBody, schemas);
  return {
    openapi: '3.1.0',
    info: {
      title: 'Sluice',
      version,
      summary: 'Projects, deployments with canary rollouts, and signed webhooks.',
      description:
        'The REST interface of Sluice. Every error has the same envelope; `/docs/errors` explains each code.',
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
      contact: { name: 'The operator of this service', url: 'https://example.com/' },
    },
    servers: [{ url: '/v1', description: 'This installation, in production.', 'x-internal': false }],
    security: [{ bearer: [] }],
    tags: Object.entries(tagCatalogue).map(([name, description]) => ({ name, description })),
    paths,
    webhooks: Object.fromEntries(eventKinds.map((kind) => [kind, { post: delivery(kind, schemas) }])),
    components: {
      securitySchemes: {
        bearer: {
          type: 'http',
          scheme: 'bearer',
          bearerFormat: 'slc_…',
          description: 'A token of this service, in the Authorization header only. RFC 8725 does not apply: not a JWT.',
        },
      },
      headers: headerComponents,
      responses: errorResponses(errorSchema),
      schemas,
    },
  };
}

function operation(route: RouteDeclaration, schemas: Json): Json {
  const statuses = new Map<number, ErrorCode[]>();
  for (const code of errorsOf(route)) {
    const { status } = errorCatalogue[code];
    statuses.set(status, [...(statuses.get(status) ?? []), code]);
  }
  const responses: Json = { [route.status]: success(route, schemas) };
  if (route.conditional) {
    const headers = { ...commonHeaders, ETag: ref('ETag') };
    responses[304] = { description: 'It is as the client has it already.', headers };
  }
  for (const status of [...statuses.keys()].sort()) responses[status] = { $ref: `#/components/responses/E${status}` };
  return {
    operationId: route.name,
    tags: [route.tag],
    summary: route.summary,
    description: describe(route, statuses),
    ...(route.scope === 'public' ? { security: [{}, { bearer: [] }] } : { security: [{ bearer: [] }] }),
    parameters: parametersOf(route),
    ...(route.body && {
      requestBody: {
        required: !route.bodyOptional,
        content: { 'application/json': { schema: refer(route.body, schemas) } },
      },
    }),
    responses,
    'x-error-codes': Object.fromEntries(statuses),
  };
}

/** The request that the service sends to a webhook, and the responses that it understands. */
function delivery(kind: keyof typeof eventCatalogue, schemas: Json): Json {
  const header = (name: string, description: string) => ({
    name,
    in: 'header',
    required: true,
    description,
    schema: { type: 'string', maxLength: 500, pattern: '^[!-~ ]+$' },
  });
  return {
    operationId: `on.${kind}`,
    tags: ['webhooks'],
    summary: kind,
    description: eventCatalogue[kind],
    security: [{}],
    parameters: [
      header('X-Service-Signature', 'Lowercase hexadecimal HMAC-SHA256 of the raw body, keyed with the secret.'),
      header('X-Service-Event', 'The kind of the event.'),
      header('X-Service-Delivery', 'The id of the delivery; the same in every attempt.'),
      header('webhook-id', 'The id of the event; the same in every attempt.'),
      header('webhook-timestamp', 'Unix seconds of the attempt.'),
      header('webhook-signature', 'Standard Webhooks: one signature for each valid secret, separated by spaces.'),
    ],
    requestBody: { required: true, content: { 'application/json': { schema: refer(eventSchemas[kind], schemas) } } },
    responses: {
      '2XX': { description: 'The delivery succeeded.' },
      '410': { description: 'The receiver wants no more deliveries: the webhook is disabled.' },
      '4XX': { description: 'The delivery is retried later; `Retry-After` is honoured.' },
      '5XX': { description: 'The delivery is retried later; `Retry-After` is honoured.' },
    },
  };
}

function describe(route: RouteDeclaration, statuses: Map<number, ErrorCode[]>): string {
  const scope =
    route.scope === 'public'
      ? 'No token needed.'
      : route.scope === null
        ? 'Any valid token.'
        : `Scope \`${route.scope}\`.`;
  const own = [...statuses.values()].flat().filter((code) => route.errors.includes(code));
  return own.length === 0 ? scope : `${scope} May fail with ${own.map((code) => `\`${code}\``).join(', ')}.`;
}

function parametersOf(route: RouteDeclaration): Json[] {
  const parameters = [...located(route.params, 'path'), ...located(route.query, 'query')];
  if (route.method === 'POST') {
    parameters.push({
      name: 'Idempotency-Key',
      in: 'header',
      required: false,
      description: 'For 24 hours, the same key with the same body returns the first response again.',
      schema: { type: 'string', minLength: 1, maxLength: 255, pattern: '^[ -~]+$' },
    });
  }
  if (route.conditional) {
    parameters.push({
      name: 'If-None-Match',
      in: 'header',
      required: false,
      description: 'The response is 304 without a body if the resource still has this `ETag`.',
      schema: { type: 'string', maxLength: 200, pattern: '^(\\*|(W/)?".*")$' },
    });
  }
  if (route.versioned && (route.method === 'PATCH' || route.method === 'DELETE')) {
    parameters.push({
      name: 'If-Match',
      in: 'header',
      required: false,
      description: 'The change is made only if the resource still has this `ETag`.',
      schema: { type: 'string', maxLength: 200, pattern: '^(\\*|".*")$' },
    });
  }
  return parameters;
}

function located(schema: TObject, location: 'path' | 'query'): Json[] {
  const required = new Set<string>((schema.required as string[] | undefined) ?? []);
  return Object.entries(schema.properties).map(([name, property]) => {
    const { description, ...rest } = plain(property, {}) as { description?: string };
    return { name, in: location, required: location === 'path' || required.has(name), description, schema: rest };
  });
}

function success(route: RouteDeclaration, schemas: Json): Json {
  const headers: Json = { ...commonHeaders };
  if (route.conditional || (route.versioned && route.status !== 204)) headers.ETag = ref('ETag');
  if (route.status === 201) headers.Location = ref('Location');
  return {
    description: route.summary,
    headers,
    ...(route.response && {
      content: { [route.media ?? 'application/json']: { schema: refer(route.response, schemas) } },
    }),
  };
}

const ref = (name: string) => ({ $ref: `#/components/headers/${name}` });
const commonHeaders = {
  'X-RateLimit-Limit': ref('RateLimitLimit'),
  'X-RateLimit-Remaining': ref('RateLimitRemaining'),
  'X-RateLimit-Reset': ref('RateLimitReset'),
  'X-Request-Id': ref('RequestId'),
  'Access-Control-Allow-Origin': ref('Access-Control-Allow-Origin'),
};
const whole = { type: 'integer', format: 'int64', minimum: 0, maximum: 9_007_199_254_740_991 };
const headerComponents = {
  RequestId: {
    description: 'Identifies the request in the logs.',
    schema: { type: 'string', maxLength: 40, pattern: '^req_[0-9a-z]{26}$' },
  },
  ETag: {
    description: 'The version of the resource, if it can be changed, and a digest of what is shown of it.',
    schema: { type: 'string', maxLength: 60, pattern: '^"(v[0-9]+)?([.]?[0-9A-Za-z_-]+)?"$' },
  },
  Location: {
    description: 'The address of the created resource.',
    schema: { type: 'string', format: 'uri', maxLength: 500 },
  },
  'Access-Control-Allow-Origin': {
    description: 'The origin of this service: pages of other origins may not call it.',
    schema: { type: 'string', format: 'uri', maxLength: 500 },
  },
  RateLimitLimit: { description: 'Requests allowed per minute.', schema: whole },
  RateLimitRemaining: { description: 'Requests left.', schema: whole },
  RateLimitReset: { description: 'Unix seconds at which the current cell ends.', schema: whole },
  RetryAfter: { description: 'Whole seconds after which to try again.', schema: whole },
};

const withRetryAfter = new Set([409, 429, 503]);

function errorResponses(schema: Json): Json {
  const used = new Set(routes.flatMap(errorsOf).map((code) => errorCatalogue[code].status));
  const statuses = [...used].sort();
  return Object.fromEntries(
    statuses.map((status) => {
      const codes = Object.entries(errorCatalogue).filter(([, entry]) => entry.status === status);
      return [
        `E${status}`,
        {
          description: codes.map(([code, { means }]) => `\`${code}\`: ${means}`).join('\n\n'),
          headers: {
            ...commonHeaders,
            ...(withRetryAfter.has(status) && { 'Retry-After': ref('RetryAfter') }),
          },
          content: { 'application/json': { schema } },
        },
      ];
    }),
  );
}

type Json = Record<string, unknown>;

/** A named schema is added to `schemas`, the components, and becomes a reference; any other is returned itself. */
function refer(schema: TSchema, schemas: Json): Json {
  const { $id } = schema as { $id?: string };
  if ($id === undefined) return plain(schema, schemas);
  if (!(($id as string) in schemas)) {
    schemas[$id] = {};
    schemas[$id] = plain(schema, schemas);
  }
  return { $ref: `#/components/schemas/${$id}` };
}

/** Without the properties that TypeBox adds for itself. */
export function plain(schema: TSchema, schemas: Json): Json {
  const { $id: _, ...rest } = JSON.parse(JSON.stringify(schema)) as Json;
  return walk(rest, schema as unknown as Json, schemas) as Json;
}

function walk(value: unknown, source: unknown, schemas: Json): unknown {
  if (Array.isArray(value)) return value.map((item, index) => child(item, (source as unknown[])[index], schemas));
  if (typeof value !== 'object' || value === null) return value;
  const out: Json = {};
  for (const [name, item] of Object.entries(value)) {
    if (name.startsWith('~')) continue;
    out[name] = child(item, (source as Json)[name], schemas);
  }
  return out;
}

function child(value: unknown, source: unknown, schemas: Json): unknown {
  const named = typeof source === 'object' && source !== null && '$id' in source;
  return named ? refer(source as TSchema, schemas) : walk(value, source, schemas);
}

const gateErrors: ErrorCode[] = [
  'invalid_request',
  'token_in_query',
  'rate_limited',
  'internal_error',
  'busy',
  'database_unavailable',
  'shutting_down',
];
const tokenErrors: ErrorCode[] = ['token_missing', 'token_invalid', 'token_expired', 'token_revoked'];
const bodyErrors: ErrorCode[] = ['invalid_json', 'body_too_large', 'unsupported_media_type', 'request_timeout'];
const postErrors: ErrorCode[] = ['idempotency_in_flight', 'idempotency_key_reused'];

/** The errors that a route may respond with: those it declares, and those of every route of its kind. */
export function errorsOf(route: RouteDeclaration): ErrorCode[] {
  const codes = new Set<ErrorCode>([...gateErrors, ...route.errors]);
  const add = (more: ErrorCode[]) => more.forEach((code) => void codes.add(code));
  if (route.scope !== 'public') add(tokenErrors);
  if (route.scope !== 'public' && route.scope !== null) add(['insufficient_scope']);
  if (route.method !== 'GET') add(bodyErrors);
  if (route.method === 'POST') add(postErrors);
  if (route.versioned && (route.method === 'PATCH' || route.method === 'DELETE')) add(['version_conflict']);
  return [...codes];
}
