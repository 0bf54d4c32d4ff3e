// What the service's own port serves outside /v1: health, metrics, the reference. Every other path is a file of the
// catalogue.

import { hash, timingSafeEqual } from 'node:crypto';
import type { IncomingHttpHeaders, IncomingMessage, RequestListener, Server, ServerResponse } from 'node:http';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Db } from '../db/database.ts';
import { isAmong, isLoopback, networkOf, parseAddress, type Range } from '../lib/address.ts';
import { Memo } from '../lib/bounded-cache.ts';
import type { Loops } from '../lib/loops.ts';
import { originForm } from '../lib/request-rules.ts';
import { memoryRateCells } from './api/rate-cells.ts';
import { docsPage, errorsPage, guidePage, referencePage, searchPage, welcomePage } from './docs-pages.ts';
import type { HttpMetrics } from './http-metrics.ts';
import { readinessChecks, readinessOf } from './readiness.ts';

const pagePolicy =
  "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'";

interface ServicePageParts {
  db: Db;
  loops: Loops;
  metrics: HttpMetrics;
  metricsAccess: MetricsAccess;
  /** Metrics of the deployments, in Prometheus' text format. */
  deploymentMetrics(): Promise<string>;
  /** What `/readyz` says besides, though it is ready. */
  remarks(): string[];
  /** How many routers of this process have a routing table in force; null: it has none to do with. */
  countRouters(): number | null;
  /** The root certificate of the local CA; null: certificates come from an ACME directory. */
  caPem: (() => Promise<string>) | null;
  baseUrl(): string;
  apiUrl(): string;
  isStopping(): boolean;
}

export function mountServicePages(
  server: FastifyInstance,
  {
    db,
    loops,
    metrics,
    metricsAccess,
    deploymentMetrics,
    remarks,
    countRouters,
    caPem,
    baseUrl,
    apiUrl,
    isStopping,
  }: ServicePageParts,
): void {
  const html = 'text/html; charset=utf-8';

  const readiness = readinessOf({ db, countRouters });
  const stuckLines = () =>
    loops.stuck().map(({ name, forMs }) => `loop stuck: ${name}, its step began ${Math.round(forMs / 1000)} s ago\n`);

  server.get('/livez', async (_request, reply) => {
    reply.header('cache-control', 'no-store').type('text/plain');
    const lines = stuckLines();
    return lines.length === 0 ? reply.send('ok\n') : reply.code(503).send(lines.join(''));
  });

  server.get<{ Querystring: { verbose?: string } }>('/readyz', async ({ query }, reply) => {
    reply.header('cache-control', 'no-store').type('text/plain');
    if (isStopping()) return reply.code(503).header('retry-after', '5').send('stopping\n');
    const [reads, writes, routes] = await Promise.all(readinessChecks.map((name) => readiness[name]()));
    const trouble = { reads, writes, routes };
    const database = reads ?? writes ?? null;
    const lines = [...(database === null ? [] : [`database unavailable: ${database}\n`]), ...stuckLines()];
    const named = readinessChecks.map((name) => `${name}: ${trouble[name] ?? 'ok'}\n`);
    if (lines.length > 0)
      return reply
        .code(503)
        .header('retry-after', '2')
        .send([...lines, ...named].join(''));
    const details = query.verbose === undefined ? [] : named;
    return reply.send(['ok\n', ...remarks().map((line) => `${line}\n`), ...details].join(''));
  });

  for (const name of readinessChecks) {
    server.get(`/readyz/${name}`, async (_request, reply) => {
      reply.header('cache-control', 'no-store').type('text/plain');
      if (isStopping()) return reply.code(503).header('retry-after', '5').send('stopping\n');
      const trouble = await readiness[name]();
      return trouble === null ? reply.send('ok\n') : reply.code(503).header('retry-after', '2').send(`${trouble}\n`);
    });
  }

  const readMetrics = keepFor(async () => (await metrics.registry.metrics()) + (await deploymentMetrics()));
  const references = new Memo<string>(10);
  const errors = new Memo<string>(1);
  const cells = memoryRateCells();
  /** Few need these pages often. Who has the token of the metrics is not limited. */
  const isTooMuch = async ({ ip }: FastifyRequest): Promise<boolean> =>
    !(await cells.take([{ key: networkOf(ip), limit: pagesPerMinute }], Date.now()))[0]!.admitted;
  const sweeping = setInterval(() => void cells.sweep(Date.now()), 60_000).unref();
  server.addHook('onClose', async () => clearInterval(sweeping));
  const onRequest = async (request: FastifyRequest, reply: FastifyReply) => {
    if (!(await isTooMuch(request))) return;
    return reply.code(429).header('retry-after', '60').header('cache-control', 'no-store').send('too many requests\n');
  };

  server.get('/metrics', metricsAccess.token === null ? { onRequest } : {}, async (request, reply) => {
    const refusal = metricsRefusal(
      { headers: request.headers, remote: request.socket.remoteAddress ?? '' },
      metricsAccess,
    );
    if (refusal) {
      reply.code(refusal.status).header('cache-control', 'no-store').type('text/plain');
      if (refusal.status === 401) reply.header('www-authenticate', 'Bearer');
      return reply.send(refusal.text);
    }
    return reply.type(metrics.registry.contentType).send(await readMetrics());
  });

  server.get('/local-ca.pem', async (_request, reply) => {
    if (!caPem) return reply.code(404).type('text/plain').send('certificates come from an ACME directory\n');
    return reply.type('application/x-pem-file').send(await caPem());
  });

  const pages = new Memo<string>(100);
  const sendPage = (reply: FastifyReply, text: string) =>
    reply.type(html).header('content-security-policy', pagePolicy).send(text);

  server.get('/docs', { onRequest }, async (_request, reply) => sendPage(reply, pages.get('', docsPage)));

  server.get('/docs/reference', { onRequest }, async (_request, reply) =>
    sendPage(
      reply,
      references.get(`${apiUrl()} ${baseUrl()}`, () => referencePage(apiUrl(), baseUrl())),
    ),
  );

  server.get('/docs/errors', { onRequest }, async (_request, reply) => sendPage(reply, errors.get('', errorsPage)));

  server.get<{ Params: { '*': string } }>('/docs/guides/*', { onRequest }, async ({ params }, reply) => {
    const text = guidePage(params['*']);
    return text === null ? reply.callNotFound() : sendPage(reply, text);
  });

  server.get<{ Querystring: { q?: string | string[] } }>('/docs/search', { onRequest }, async ({ query }, reply) => {
    const words = Array.isArray(query.q) ? query.q.join(' ') : (query.q ?? '');
    return sendPage(reply, searchPage(words.slice(0, mostQueryLength)));
  });
}

const mostQueryLength = 200;

/** From one network, of all these pages together. */
const pagesPerMinute = 1200;
const restFactor = 10;

/**
 * What `compute` gives is given again for ten times as long as it took: however often it is asked for, it takes a tenth of
 * the time. Those who come meanwhile wait for the same.
 */
export function keepFor(compute: () => Promise<string>, nowMs = () => performance.now()): () => Promise<string> {
  let kept: Promise<string> | null = null;
  let untilMs = Number.POSITIVE_INFINITY;
  return () => {
    if (kept && nowMs() < untilMs) return kept;
    const startedAt = nowMs();
    untilMs = Number.POSITIVE_INFINITY;
    const computing = compute();
    kept = computing;
    const ended = () => {
      untilMs = nowMs() + restFactor * (nowMs() - startedAt);
    };
    computing.then(ended, () => {
      kept = null;
    });
    return computing;
  };
}

export interface MetricsAccess {
  /** Null: those on this machine may read them. */
  token: string | null;
  /** Without a token, those who reach the service directly may read them, from wherever that is. */
  isOpen: boolean;
  trustedProxies: readonly Range[];
}

interface Refusal {
  status: 401 | 403;
  text: string;
}

const digest = (text: string): Buffer => hash('sha256', text, 'buffer');

/** Why this request may not read the metrics, which cover every account; null: it may. */
export function metricsRefusal(
  { headers, remote }: { headers: IncomingHttpHeaders; remote: string },
  { token, isOpen, trustedProxies }: MetricsAccess,
): Refusal | null {
  if (token !== null) {
    const given = /^Bearer +(.+)$/i.exec(headers.authorization ?? '')?.[1] ?? '';
    if (timingSafeEqual(digest(given), digest(token))) return null;
    return { status: 401, text: 'Send SLUICE_METRICS_TOKEN as Authorization: Bearer.\n' };
  }
  const cameThroughProxy = headers['x-forwarded-for'] !== undefined && isAmong(remote, trustedProxies);
  const address = parseAddress(remote);
  const isLocal = address !== null && isLoopback(address);
  if (!cameThroughProxy && (isLocal || isOpen)) return null;
  return {
    status: 403,
    text: 'Metrics are not for the public. Ask from this machine, or set SLUICE_METRICS_TOKEN or SLUICE_METRICS_OPEN.\n',
  };
}

const servicePaths = /^\/(?:v1|docs|console|livez|readyz|metrics|local-ca\.pem)(?:[/?]|$)/;

/** What the service offers beside the catalogue; relations of RFC 8631. The gallery shows links that have a title. */
const serviceLinks = [
  '</console>; rel="related"; title="Console"',
  '</docs>; rel="service-doc"; title="API reference"',
  '</v1/openapi.json>; rel="service-desc"; title="OpenAPI"',
].join(', ');

/** Stands at `/` while the catalogue has published nothing. */
function sendWelcome({ method }: IncomingMessage, response: ServerResponse): void {
  const page = welcomePage();
  response.writeHead(200, {
    'content-type': 'text/html; charset=utf-8',
    'content-length': Buffer.byteLength(page),
    'content-security-policy': pagePolicy,
    'cache-control': 'no-store',
    'x-content-type-options': 'nosniff',
  });
  response.end(method === 'HEAD' ? undefined : page);
}

/** The gallery, and the document that it reads: as plain files on another server they come without these links. */
const linkedPaths = new Set(['/', '/index.html', '/api/streams.json']);

/** Puts the catalogue's handler in front of the server's own listener, so that its responses bypass Fastify. */
export function mountSite(
  server: Server,
  handle: (request: IncomingMessage, response: ServerResponse, missing?: () => void) => void,
  endsConnections: () => boolean,
  hasApi: boolean,
): void {
  const [service] = server.listeners('request') as RequestListener[];
  server.removeAllListeners('request');
  server.on('request', (request, response) => {
    const path = originForm(request.url!);
    if (servicePaths.test(path)) return service!(request, response as never);
    if (hasApi && linkedPaths.has(path)) response.setHeader('link', serviceLinks);
    if (endsConnections()) response.shouldKeepAlive = false;
    handle(request, response, hasApi && path === '/' ? () => sendWelcome(request, response) : undefined);
  });
}
