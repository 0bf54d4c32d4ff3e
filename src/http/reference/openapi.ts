// The OpenAPI 3.1 document, generated from the same declarations that validate requests.
import type { TObject } from 'typebox';
import { routes } from '../../contract/api.ts';
import { type RouteDeclaration, tagCatalogue } from '../../contract/declare/route.ts';
import { ErrorBody } from '../../contract/declare/shapes.ts';
import { type ErrorCode, errorCatalogue } from '../../contract/errors.ts';
import { eventCatalogue, eventKinds, eventSchemas } from '../../contract/events.ts';
import { errorResponses, headerComponents, success } from './openapi-responses.ts';
import { type Json, plain, refer } from './openapi-schemas.ts';
import { errorsOf } from './route-errors.ts';

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
