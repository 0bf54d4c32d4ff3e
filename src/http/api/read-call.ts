// Reads and validates a request against its declaration: what a handler is called with.
import type { FastifyRequest } from 'fastify';
import type { Caller } from '../../contract/caller.ts';
import type { RouteDeclaration } from '../../contract/declare/route.ts';
import { ApiError, notFound, type ParamName } from '../../contract/errors.ts';
import type { Log } from '../../lib/log.ts';
import type { Seal } from '../../lib/seal.ts';
import { conforms } from './compiled.ts';
import { readCursor, writeCursor } from './cursor.ts';
import type { ApiCall } from './route.ts';
import { coerceQuery, validate } from './validate.ts';

const defaultLimit = 20;

const limitOf = ({ query }: RouteDeclaration): number =>
  (query.properties.limit as { default?: number } | undefined)?.default ?? defaultLimit;

interface PageQuery {
  limit?: number;
  cursor?: string;
}

export const etagOf = (version: number): string => `"v${version}"`;

export function readCall(
  { seal, log }: { seal: Seal; log: Log },
  declaration: RouteDeclaration,
  request: FastifyRequest,
): ApiCall {
  const caller = request.caller as Caller;
  const params = readParams(declaration, request.params);
  const query = readQuery(declaration, request.query as Record<string, unknown>);
  const body = readBody(declaration, request.body);
  const { limit = limitOf(declaration), cursor } = query as PageQuery;
  const list = () => {
    const { limit: _, cursor: __, ...filters } = query as PageQuery;
    return `${caller?.accountId} ${request.routeOptions.url} ${JSON.stringify([params, filters])}`;
  };
  const ifMatch = request.headers['if-match'];
  return {
    params,
    query,
    body: body as ApiCall['body'],
    caller,
    requestId: request.id,
    address: request.ip,
    log,
    page: { limit, after: cursor === undefined ? null : readCursor(seal, list(), cursor) },
    paginate(rows, keyOf, presentRow) {
      const data = rows.slice(0, limit);
      const hasMore = rows.length > limit;
      const next = hasMore ? writeCursor(seal, list(), keyOf(data.at(-1)!)) : null;
      return { data: data.map(presentRow), page: { next, has_more: hasMore } };
    },
    expectVersion(version) {
      if (ifMatch === undefined || ifMatch === '*') return;
      if (ifMatch.split(',').some((tag) => tag.trim() === etagOf(version))) return;
      throw new ApiError('version_conflict', 'The resource has changed since the version in If-Match.', {
        details: [{ path: 'header.if-match', message: `the current version is ${etagOf(version)}` }],
      });
    },
  };
}

/** A malformed id is a 404, like an id that does not exist. */
function readParams({ params: schema }: RouteDeclaration, params: unknown): ApiCall['params'] {
  for (const name in schema.properties) {
    const value = (params as Record<string, string>)[name]!;
    if (!conforms(schema.properties[name]!, value)) throw notFound(name as ParamName, value);
  }
  return params as ApiCall['params'];
}

function readQuery({ query: schema }: RouteDeclaration, query: Record<string, unknown>): ApiCall['query'] {
  // Most requests have none, and each step of reading one costs them.
  const isEmpty = Object.keys(query).length === 0;
  if (isEmpty && conforms(schema, query)) return query as ApiCall['query'];
  return validate(schema, coerceQuery(schema, query), 'query') as ApiCall['query'];
}

function readBody(declaration: RouteDeclaration, body: unknown): unknown {
  if (declaration.body) return validate(declaration.body, declaration.bodyOptional ? (body ?? {}) : body, 'body');
  if (body === undefined || (typeof body === 'object' && body !== null && Object.keys(body).length === 0))
    return undefined;
  throw new ApiError('invalid_request', 'This request must not have a body.', {
    details: [{ path: 'body', message: 'must be empty' }],
  });
}
