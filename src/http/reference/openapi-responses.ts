// Responses and their headers in the OpenAPI document.
import { routes } from '../../contract/api.ts';
import type { RouteDeclaration } from '../../contract/declare/route.ts';
import { errorCatalogue } from '../../contract/errors.ts';
import { type Json, refer } from './openapi-schemas.ts';
import { errorsOf } from './route-errors.ts';

export function success(route: RouteDeclaration, schemas: Json): Json {
  const headers: Json = { ...commonHeaders };
  if (route.versioned && route.status !== 204) headers.ETag = ref('ETag');
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
export const headerComponents = {
  RequestId: {
    description: 'Identifies the request in the logs.',
    schema: { type: 'string', maxLength: 40, pattern: '^req_[0-9a-z]{26}$' },
  },
  ETag: {
    description: 'The version of the resource.',
    schema: { type: 'string', maxLength: 40, pattern: '^"v[0-9]+"$' },
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

export function errorResponses(schema: Json): Json {
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
