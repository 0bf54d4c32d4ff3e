// Carries out a call of a declared route: reads and validates the request, runs the handler, sends the response. A change
// runs in one transaction with its audit row and, if the request has an Idempotency-Key, its stored response.

import { hash, timingSafeEqual } from 'node:crypto';
import { Readable } from 'node:stream';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { RouteDeclaration } from '../../contract/declare.ts';
import { ApiError, notFound, type ParamName } from '../../contract/errors.ts';
import type { Caller } from '../../contract/scopes.ts';
import type { Db } from '../../db/database.ts';
import { ChangedMeanwhile } from '../../db/guarded.ts';
import { preparedInsert } from '../../db/prepared.ts';
import { Memo } from '../../lib/bounded-cache.ts';
import { type Clock, deadlineOf } from '../../lib/clock.ts';
import type { IdSource } from '../../lib/ids.ts';
import type { Log } from '../../lib/log.ts';
import { listsTag } from '../../lib/request-rules.ts';
import type { Seal } from '../../lib/seal.ts';
import { publish } from '../../signals/signals.ts';
import { envelope, toApiError } from '../error-responses.ts';
import { compareRecords, maxChanges } from './compare-records.ts';
import {
  claimIdempotencyKey,
  completeIdempotencyKey,
  type IdempotentRequest,
  readIdempotencyKey,
  releaseIdempotencyKey,
  type StoredResponse,
} from './idempotency.ts';
import type { Answer, ApiCall, ServedRoute } from './served-route.ts';
import { coerceQuery, conforms, validate } from './validate.ts';

export interface Platform {
  db: Db;
  seal: Seal;
  ids: IdSource;
  clock: Clock;
  log: Log;
  apiUrl(): string;
}

/** In every round of a conflict one transaction succeeds, and a pool has ten connections: twenty rounds are plenty. */
const maxAttempts = 20;

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
    if (request.method === 'HEAD') {
      stream.destroy();
      // Not undefined: that would claim a body of 0 bytes.
      return reply.header('content-type', route.declaration.media).send(Readable.from([]));
    }
    return reply.header('content-type', route.declaration.media).send(stream);
  }
  if (route.declaration.method === 'GET') {
    const answer = await untilUnchanged(() => route.handle(call, platform.db));
    return send(reply, unlessKnown(request, presentOnce(platform, route.declaration, answer)));
  }
  const response = await change(platform, route, request, call);
  return send(reply, response);
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
  const earlier = await claimIdempotencyKey(db, seal, idempotent, deadlineOf(clock).now());
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
  const { split, handle } = route;
  const parts = (await split?.partsOf(call, platform.db)) ?? [call];
  const answers: Answer<unknown>[] = [];
  for (const part of parts.slice(0, -1)) answers.push(await inTransaction(platform.db, (tx) => handle(part, tx)));
  return inTransaction(platform.db, async (tx) => {
    const last = await handle(parts.at(-1)!, tx);
    const answer = split ? split.merge([...answers, last] as Parameters<typeof split.merge>[0]) : last;
    await insertAudit(platform, tx, route.declaration, request, call, answer);
    const response = present(platform, route.declaration, answer);
    if (idempotent) await completeIdempotencyKey(tx, platform.seal, idempotent, response);
    return response;
  });
}

const inTransaction = <T>(db: Db, work: (tx: Db) => Promise<T>): Promise<T> =>
  untilUnchanged(() => db.transaction().execute(work));

async function untilUnchanged<T>(work: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof ChangedMeanwhile) || attempt === maxAttempts) throw error;
    }
  }
}

const insertAuditRow = preparedInsert('audit');

/** Also publishes the change, so that open pages of the console refresh. */
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
  const own = answer.location ?? pathOf(request).slice('/v1'.length);
  for (const resource of [own, ...(answer.alsoChanged ?? [])]) {
    await insertAuditRow(tx, {
      id: ids('aud'),
      account_id: accountId,
      action: declaration.name,
      resource,
      project_id: projectId,
      token_id: call.caller.tokenId,
      request_id: call.requestId,
      address: call.address,
      changes: resource === own ? changesOf(call, answer) : null,
      created_at: clock.now(),
    });
  }
}

function changesOf(call: ApiCall, { before, body, location, changedSecrets = [] }: Answer<unknown>): string | null {
  const hidden = changedSecrets.map((field) => ({ field, from: null, to: null }));
  const found =
    before === undefined && location !== undefined
      ? compareRecords(null, chosen(call, body))
      : compareRecords(before ?? body, body);
  const changes = [...found, ...hidden].slice(0, maxChanges);
  return changes.length === 0 ? null : JSON.stringify(changes);
}

/** What the request chose of the record it created. A secret is not among it: a record either shows no such field, or made it. */
function chosen({ body: asked }: ApiCall, created: unknown): object {
  const names = new Set(Object.keys((asked as object | undefined) ?? {}));
  return Object.fromEntries(Object.entries(created as object).filter(([name]) => names.has(name)));
}

const pathOf = (request: FastifyRequest): string => request.url.split('?', 1)[0]!;

const repeated = new WeakMap<Answer<unknown>, StoredResponse>();

/** A client that polls gets the same over and over. */
function presentOnce(platform: Platform, declaration: RouteDeclaration, answer: Answer<unknown>): StoredResponse {
  if (!answer.isRepeated) return present(platform, declaration, answer);
  let response = repeated.get(answer);
  if (!response) {
    response = present(platform, declaration, answer);
    repeated.set(answer, response);
  }
  return response;
}

function present(platform: Platform, declaration: RouteDeclaration, answer: Answer<unknown>): StoredResponse {
  const headers: Record<string, string> = {};
  const body = answer.body === undefined ? '' : JSON.stringify(answer.body);
  if (declaration.conditional) headers.etag = etagOf(answer.version, body);
  else if (answer.version !== undefined) headers.etag = etagOf(answer.version);
  if (answer.location !== undefined) headers.location = `${platform.apiUrl()}/v1${answer.location}`;
  return {
    status: declaration.status,
    headers,
    body,
  };
}

/** What the client has already is not sent again. */
function unlessKnown(request: FastifyRequest, response: StoredResponse): StoredResponse {
  const known = request.headers['if-none-match'];
  const { etag } = response.headers;
  if (known === undefined || etag === undefined || !listsTag(known, etag, true)) return response;
  return { ...response, status: 304, body: '' };
}

/** An error names its request, so a stored one gets the id of the new request. */
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

// Reading a request: what the handler is called with, validated against the declaration of the route.

const defaultLimit = 20;

const limitOf = ({ query }: RouteDeclaration): number =>
  (query.properties.limit as { default?: number } | undefined)?.default ?? defaultLimit;

interface PageQuery {
  limit?: number;
  cursor?: string;
}

/** RFC 9110, 8.8.3: each in double quotes, perhaps weak; weak ones match nothing here. */
const entityTags = /^\s*(?:W\/)?"[^"\s]*"(?:\s*,\s*(?:W\/)?"[^"\s]*")*\s*$/;

/**
 * Some of what a resource shows changes without its version, such as the traffic of a canary. So a GET gives the digest of
 * what it shows as well, which only If-None-Match compares.
 */
const etagOf = (version: number | undefined, body?: string): string => {
  const parts = [...(version === undefined ? [] : [`v${version}`]), ...(body === undefined ? [] : [digestOf(body)])];
  return `"${parts.join('.')}"`;
};

/** A client that polls gets the same over and over. */
const digests = new Memo<string>(1000);
const longestRemembered = 4096;

const digest = (body: string): string => hash('sha256', body, 'base64url').slice(0, 16);
const digestOf = (body: string): string => (body.length > longestRemembered ? digest(body) : digests.get(body, digest));

const namesVersion = (tag: string, version: number): boolean => /^"v(\d+)[."]/.exec(tag)?.[1] === String(version);

function readCall(
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
    paginate(rows, keyOf, presentRow, searchedTo = null) {
      const data = rows.slice(0, limit);
      const last = rows.length > limit ? keyOf(data.at(-1)!) : searchedTo;
      const next = last === null ? null : writeCursor(seal, list(), last);
      return { data: data.map(presentRow), page: { next, has_more: next !== null } };
    },
    expectVersion(version) {
      if (ifMatch === undefined || ifMatch.trim() === '*') return;
      if (!entityTags.test(ifMatch)) {
        throw new ApiError('invalid_request', 'If-Match is no list of entity tags.', {
          details: [{ path: 'header.if-match', message: 'must be * or tags in double quotes, such as "v3"' }],
        });
      }
      if (ifMatch.split(',').some((tag) => namesVersion(tag.trim(), version))) return;
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

// A cursor holds the key of the last item of a page and a MAC over the list, its filters and the account. So a forged cursor,
// or one of another list, is refused.

const macBytes = 12;

function writeCursor(seal: Seal, list: string, after: string): string {
  const mac = seal.mac(`cursor\n${list}\n${after}`).subarray(0, macBytes);
  return Buffer.concat([mac, Buffer.from(after)]).toString('base64url');
}

function readCursor(seal: Seal, list: string, cursor: string): string {
  const bytes = Buffer.from(cursor, 'base64url');
  const after = bytes.subarray(macBytes).toString();
  const mac = seal.mac(`cursor\n${list}\n${after}`).subarray(0, macBytes);
  if (bytes.length <= macBytes || !timingSafeEqual(bytes.subarray(0, macBytes), mac)) {
    throw new ApiError('invalid_cursor', 'The cursor does not belong to this list with these filters.', {
      details: [{ path: 'query.cursor', message: 'is not a cursor of this list' }],
    });
  }
  return after;
}
