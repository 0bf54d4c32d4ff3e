// The HTTP server: connection limits, the API under /v1 behind its gate, and the error envelope for every failure, even for
// bytes that are not HTTP.
import Fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify';
import type { RouteDeclaration } from '../contract/declare.ts';
import { ApiError } from '../contract/errors.ts';
import type { Caller } from '../contract/scopes.ts';
import { isAmong, type Range } from '../lib/address.ts';
import { originForm } from '../lib/request-rules.ts';
import { carryOut, type Platform } from './api/carry-out.ts';
import type { Gate } from './api/gate.ts';
import type { ServedRoute } from './api/served-route.ts';
import { parseJson } from './api/validate.ts';
import { fail, failConnection } from './error-responses.ts';
import type { HttpMetrics } from './http-metrics.ts';
import { UnreadResponses } from './unread-responses.ts';

declare module 'fastify' {
  interface FastifyRequest {
    caller: Caller | null;
    startedAt: number;
    /** Fastify puts its `routeOptions` together anew each time they are read. */
    route: FastifyRequest['routeOptions']['config'] | null;
  }
  interface FastifyContextConfig {
    declaration?: RouteDeclaration;
  }
}

const bodyLimitBytes = 1024 * 1024;
/** The limit for the request line and the headers together. */
const headLimitBytes = 64 * 1024;

export interface ServerTimeouts {
  headersMs: number;
  requestMs: number;
  keepAliveMs: number;
}

export const defaultTimeouts: ServerTimeouts = { headersMs: 10_000, requestMs: 30_000, keepAliveMs: 65_000 };

interface ServerParts extends Platform {
  gate: Gate;
  routes: ServedRoute[];
  metrics: HttpMetrics;
  timeouts: ServerTimeouts;
  /** Proxies whose X-Forwarded-For is trusted. */
  trustedProxies: Range[];
  isStopping(): boolean;
  /** Whether every response is the last one on its connection: because of a stop, or because another process takes over. */
  endsConnections(): boolean;
}

interface ServerContext extends ServerParts {
  unread: UnreadResponses;
}

export function createServer(given: ServerParts): FastifyInstance {
  const parts: ServerContext = { ...given, unread: new UnreadResponses() };
  const { timeouts, trustedProxies } = parts;
  const server = Fastify({
    logger: false,
    trustProxy: trustedProxies.length > 0 && ((address: string) => isAmong(address, trustedProxies)),
    bodyLimit: bodyLimitBytes,
    requestTimeout: timeouts.requestMs,
    keepAliveTimeout: timeouts.keepAliveMs,
    forceCloseConnections: 'idle',
    return503OnClosing: false,
    genReqId: () => parts.ids('req'),
    rewriteUrl: ({ url }) => originForm(url!),
    routerOptions: { maxParamLength: 300 },
    http: {
      maxHeaderSize: headLimitBytes,
      headersTimeout: timeouts.headersMs,
      connectionsCheckingInterval: Math.min(1000, timeouts.headersMs),
    },
    frameworkErrors: (error, request, reply) => void failBeforeRouting(parts, error, request, reply),
    clientErrorHandler: (error, socket) => failConnection(parts, error, socket),
  });
  // Node reads it and Fastify does not know it: it would answer 400 before anything else is looked at.
  server.addHttpMethod('QUERY', { overrideExisting: true });
  // An Expect header other than 100-continue is ignored.
  server.server.on('checkExpectation', (request, response) => server.server.emit('request', request, response));
  server.decorateRequest('caller', null);
  server.decorateRequest('startedAt', 0);
  server.decorateRequest('route', null);
  server.removeAllContentTypeParsers();
  server.addContentTypeParser('application/json', { parseAs: 'buffer' }, (_request, body, done) => {
    try {
      done(null, parseJson(body as Buffer));
    } catch (error) {
      done(error as Error);
    }
  });
  addHooks(server, parts);
  server.setErrorHandler((error, request, reply) => fail(parts, error, request, reply));
  server.register(async (api) => mountApi(api, parts), { prefix: '/v1' });
  return server;
}

function addHooks(server: FastifyInstance, parts: ServerContext): void {
  server.addHook('onRequest', (request, reply, done) => {
    request.startedAt = performance.now();
    request.route = request.routeOptions.config;
    reply.header('x-request-id', request.id);
    reply.header('x-content-type-options', 'nosniff');
    done();
  });
  // Otherwise a keep-alive connection that is in use during the stop would stay open and delay it.
  server.addHook('onSend', (request, reply, payload, done) => {
    if (parts.endsConnections()) reply.header('connection', 'close');
    if (request.caller && typeof payload === 'string') parts.unread.add(request.caller.accountId, payload, reply.raw);
    done(null, payload);
  });
  server.addHook('onResponse', (request, reply, done) => {
    record(parts, request, reply);
    done();
  });
}

function mountApi(api: FastifyInstance, parts: ServerContext): void {
  api.addHook('onRequest', (request, reply) => enter(parts, request, reply, request.route?.declaration ?? null));
  for (const route of parts.routes) {
    const { declaration } = route;
    api.route({
      method: declaration.method,
      url: declaration.path.replaceAll(/\{(\w+)\}/g, ':$1'),
      config: { declaration },
      handler: (request, reply) => carryOut(parts, route, request, reply),
    });
  }
  const known = parts.routes.map(({ declaration }) => ({
    method: declaration.method,
    pattern: new RegExp(`^/v1${declaration.path.replaceAll('.', '\\.').replaceAll(/\{\w+\}/g, '[^/]+')}$`),
  }));
  api.setNotFoundHandler((request) => {
    const path = request.url.split('?', 1)[0]!;
    const matching = known.filter(({ pattern }) => pattern.test(path)).map(({ method }) => method as string);
    const methods = [...new Set(matching)];
    if (methods.length === 0) throw new ApiError('route_not_found', 'There is no such path.');
    const allow = methods.includes('GET') ? ['HEAD', ...methods] : methods;
    throw new ApiError('method_not_allowed', `This path takes ${allow.join(', ')}.`, {
      headers: { Allow: allow.join(', ') },
    });
  });
}

/** Runs first for every API request, so that every response has the headers of the rate limit. */
async function enter(
  parts: ServerContext,
  request: FastifyRequest,
  reply: FastifyReply,
  declaration: RouteDeclaration | null,
): Promise<void> {
  reply.header('cache-control', 'no-store');
  // Only pages of this service may call the API: no other page has a reason to hold a token.
  reply.header('access-control-allow-origin', originOf(parts.apiUrl()));
  const stopping = parts.isStopping();
  if (stopping) reply.header('connection', 'close');
  request.caller = await parts.gate.admit(request, reply, declaration);
  if (request.caller) parts.unread.require(request.caller.accountId);
  if (stopping) throw new ApiError('shutting_down', 'The service is stopping.', { headers: { 'Retry-After': '5' } });
}

let lastOrigin = { url: '', origin: '' };

function originOf(url: string): string {
  if (lastOrigin.url !== url) lastOrigin = { url, origin: new URL(url).origin };
  return lastOrigin.origin;
}

/** For a path that cannot be decoded. Fastify runs no hooks for it, so this calls the gate itself. */
async function failBeforeRouting(
  parts: ServerContext,
  error: Error,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<void> {
  request.startedAt = performance.now();
  reply.header('x-content-type-options', 'nosniff');
  let thrown: unknown = error;
  try {
    if (/^\/v1(?:[/?]|$)/.test(request.raw.url!)) await enter(parts, request, reply, null);
  } catch (earlier) {
    thrown = earlier;
  }
  fail(parts, thrown, request, reply);
}

/** A change is worth a line, and so is what was refused or failed. That somebody looked is not. */
function levelOf(method: string, status: number): 'debug' | 'info' {
  return ['GET', 'HEAD', 'OPTIONS'].includes(method) && status < 400 ? 'debug' : 'info';
}

function record(parts: ServerParts, request: FastifyRequest, reply: FastifyReply): void {
  const seconds = (performance.now() - request.startedAt) / 1000;
  parts.metrics.observe(request.method, request.route?.url ?? 'none', reply.statusCode, seconds);
  const level = levelOf(request.method, reply.statusCode);
  if (!parts.log.isLevelEnabled(level)) return;
  parts.log[level](
    {
      request_id: request.id,
      method: request.method,
      path: request.url.split('?', 1)[0],
      status: reply.statusCode,
      ms: Math.round(seconds * 10_000) / 10,
      token_id: request.caller?.tokenId,
      address: request.ip,
    },
    'request',
  );
}
