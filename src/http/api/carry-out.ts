// Carries out a declared route: validate, run, present. A change runs in one transaction with its audit row and, where
// the request has an Idempotency-Key, its remembered answer.
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Caller } from '../../contract/caller.ts';
import { ApiError, notFound, type ParamName } from '../../contract/errors.ts';
import type { RouteDeclaration } from '../../contract/route.ts';
import type { Db } from '../../db/database.ts';
import { ChangedMeanwhile } from '../../db/guarded.ts';
import { preparedInsert } from '../../db/prepared.ts';
import type { Clock } from '../../lib/clock.ts';
import type { IdSource } from '../../lib/ids.ts';
import type { Log } from '../../lib/log.ts';
import type { Seal } from '../../lib/seal.ts';
import { publish } from '../../signals/signals.ts';
import { readCursor, writeCursor } from './cursor.ts';
import {
  completeIdempotencyKey,
  type IdempotentRequest,
  readIdempotencyKey,
  releaseIdempotencyKey,
  type StoredResponse,
  takeIdempotencyKey,
} from './idempotency.ts';
import { envelope, toApiError } from './present-error.ts';
import type { Answer, ApiCall, ServedRoute } from './route.ts';
import { coerceQuery, conforms, validate } from './validate.ts';

export interface Platform {
  db: Db;
  seal: Seal;
  ids: IdSource;
  clock: Clock;
  log: Log;
  apiUrl(): string;
}

const defaultLimit = 20;
// Each round of a conflict has a winner, and a pool has ten connections: twenty rounds are enough for any crowd.
const attempts = 20;

export async function carryOut(
  platform: Platform,
  route: ServedRoute,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<FastifyReply> {
  const call = readCall(platform, route.declaration, request);
  if (route.follow) {
    const header = (name: string) => request.headers[name]?.toString();
    const stream = await route.follow(call, platform.db, header);
    return reply.header('content-type', route.declaration.media).send(stream);
  }
  if (route.declaration.method === 'GET') {
    const answer = await route.handle(call, platform.db);
    return send(reply, present(platform, route.declaration, answer));
  }
  const response = await change(platform, route, request, call);
  return send(reply, response);
}

function readCall({ seal, log }: Platform, declaration: RouteDeclaration, request: FastifyRequest): ApiCall {
  const caller = request.caller as Caller;
  const params = readParams(declaration, request.params);
  const rawQuery = request.query as Record<string, unknown>;
  const query = validate(declaration.query, coerceQuery(declaration.query, rawQuery), 'query') as ApiCall['query'];
  const body = readBody(declaration, request.body);
  const { limit = defaultLimit, cursor, ...filters } = query as { limit?: number; cursor?: string };
  const list = () => `${caller?.accountId} ${request.routeOptions.url} ${JSON.stringify([params, filters])}`;
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

/** An id of the wrong form names nothing: that is the same 404 as an id nobody has. */
function readParams({ params: schema }: RouteDeclaration, params: unknown): ApiCall['params'] {
  for (const [name, property] of Object.entries(schema.properties)) {
    const value = (params as Record<string, string>)[name]!;
    if (!conforms(property, value)) throw notFound(name as ParamName, value);
  }
  return params as ApiCall['params'];
}

function readBody(declaration: RouteDeclaration, body: unknown): unknown {
  if (declaration.body) return validate(declaration.body, declaration.bodyOptional ? (body ?? {}) : body, 'body');
  if (body === undefined || (typeof body === 'object' && body !== null && Object.keys(body).length === 0))
    return undefined;
  throw new ApiError('invalid_request', 'This request takes no body.', {
    details: [{ path: 'body', message: 'is not taken' }],
  });
}

async function change(
  platform: Platform,
  route: ServedRoute,
  request: FastifyRequest,
  call: ApiCall,
): Promise<StoredResponse> {
  const { db, seal, clock } = platform;
  const key = route.declaration.method === 'POST' ? readIdempotencyKey(request.headers['idempotency-key']) : null;
  if (key === null) return commit(platform, route, request, call, null);

  const idempotent: IdempotentRequest = {
    tokenId: call.caller.tokenId,
    key,
    route: `${request.method} ${pathOf(request)}`,
    body: call.body,
    owner: call.requestId,
  };
  const earlier = await takeIdempotencyKey(db, seal, idempotent, clock.now());
  if (earlier) return replayed(earlier, call.requestId);
  try {
    return await commit(platform, route, request, call, idempotent);
  } catch (thrown) {
    const error = toApiError(thrown);
    if (error.status === 401 || error.status === 403 || error.status === 429 || error.status >= 500) {
      await releaseIdempotencyKey(db, idempotent);
      throw thrown;
    }
    const response = {
      status: error.status,
      headers: error.headers,
      body: JSON.stringify(envelope(error, call.requestId, platform.apiUrl())),
    };
    await completeIdempotencyKey(db, seal, idempotent, response);
    return response;
  }
}

async function commit(
  platform: Platform,
  route: ServedRoute,
  request: FastifyRequest,
  call: ApiCall,
  idempotent: IdempotentRequest | null,
): Promise<StoredResponse> {
  await route.prepare?.(call);
  for (let attempt = 1; ; attempt++) {
    try {
      return await platform.db.transaction().execute(async (tx) => {
        const answer = await route.handle(call, tx);
        await insertAudit(platform, tx, route.declaration, request, call, answer);
        const response = present(platform, route.declaration, answer);
        if (idempotent) await completeIdempotencyKey(tx, platform.seal, idempotent, response);
        return response;
      });
    } catch (error) {
      if (!(error instanceof ChangedMeanwhile) || attempt === attempts) throw error;
    }
  }
}

const insertAuditRow = preparedInsert('audit');

/** Writes down who changed what, and publishes it for people who may be looking at it. */
async function insertAudit(
  { ids, clock }: Platform,
  tx: Db,
  declaration: RouteDeclaration,
  request: FastifyRequest,
  call: ApiCall,
  answer: Answer<unknown>,
): Promise<void> {
  const params = call.params as { id?: string; name?: string };
  const projectId = answer.projectId ?? params.id ?? null;
  const { accountId } = call.caller;
  publish(tx, 'changes', { accountId, projectId, environment: params.name ?? null });
  await insertAuditRow(tx, {
    id: ids('aud'),
    account_id: accountId,
    action: declaration.name,
    resource: answer.location ?? pathOf(request).slice('/v1'.length),
    project_id: projectId,
    token_id: call.caller.tokenId,
    request_id: call.requestId,
    address: call.address,
    created_at: clock.now(),
  });
}

const pathOf = (request: FastifyRequest): string => request.url.split('?', 1)[0]!;

export const etagOf = (version: number): string => `"v${version}"`;

function present(platform: Platform, declaration: RouteDeclaration, answer: Answer<unknown>): StoredResponse {
  const headers: Record<string, string> = {};
  if (answer.version !== undefined) headers.etag = etagOf(answer.version);
  if (answer.location !== undefined) headers.location = `${platform.apiUrl()}/v1${answer.location}`;
  return {
    status: declaration.status,
    headers,
    body: answer.body === undefined ? '' : JSON.stringify(answer.body),
  };
}

/** An error names the request it answers, so a remembered one gets the id of the request that asks again. */
function replayed(response: StoredResponse, requestId: string): StoredResponse {
  const headers = { ...response.headers, 'idempotency-replayed': 'true' };
  if (response.status < 400) return { ...response, headers };
  const body = JSON.parse(response.body);
  body.error.request_id = requestId;
  return { ...response, headers, body: JSON.stringify(body) };
}

function send(reply: FastifyReply, { status, headers, body }: StoredResponse): FastifyReply {
  reply.code(status);
  for (const name in headers) reply.header(name, headers[name]);
  if (body === '') return reply.send();
  return reply.header('content-type', 'application/json; charset=utf-8').send(body);
}
