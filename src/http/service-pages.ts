// What the service's own port serves outside /v1: health, metrics, the reference. Every other path is a file of the
// catalogue.

import { hash, timingSafeEqual } from 'node:crypto';
import type { IncomingHttpHeaders, IncomingMessage, RequestListener, Server, ServerResponse } from 'node:http';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { sql } from 'kysely';
import { type Db, dialectOf } from '../db/database.ts';
import { unavailableReason } from '../db/database-errors.ts';
import { isAmong, isLoopback, networkOf, parseAddress, type Range } from '../lib/address.ts';
import { Memo } from '../lib/bounded-cache.ts';
import type { Loops } from '../lib/loops.ts';
import { originForm } from '../lib/request-rules.ts';
import { memoryRateCells } from './api/rate-cells.ts';
import { errorsPage, referencePage } from './docs-pages.ts';
import type { HttpMetrics } from './http-metrics.ts';

interface ServicePageParts {
  db: Db;
  loops: Loops;
  metrics: HttpMetrics;
  metricsAccess: MetricsAccess;
  /** Metrics of the deployments, in Prometheus' text format. */
  deploymentMetrics(): Promise<string>;
  /** What `/readyz` says besides, though it is ready. */
  remarks(): string[];
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
    caPem,
    baseUrl,
    apiUrl,
    isStopping,
  }: ServicePageParts,
): void {
  const html = 'text/html; charset=utf-8';
  const policy =
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

  const findDatabaseTrouble = databaseCheck(db);
  const stuckLines = () =>
    loops.stuck().map(({ name, forMs }) => `loop stuck: ${name}, its step began ${Math.round(forMs / 1000)} s ago\n`);

  server.get('/livez', async (_request, reply) => {
    reply.header('cache-control', 'no-store').type('text/plain');
    const lines = stuckLines();
    return lines.length === 0 ? reply.send('ok\n') : reply.code(503).send(lines.join(''));
  });

  server.get('/readyz', async (_request, reply) => {
    reply.header('cache-control', 'no-store').type('text/plain');
    if (isStopping()) return reply.code(503).header('retry-after', '5').send('stopping\n');
    const trouble = await findDatabaseTrouble();
    const lines = [...(trouble === null ? [] : [`database unavailable: ${trouble}\n`]), ...stuckLines()];
    if (lines.length > 0) return reply.code(503).header('retry-after', '2').send(lines.join(''));
    return reply.send(['ok', ...remarks(), ''].join('\n'));
  });

  const readMetrics = keepFor(async () => (await metrics.registry.metrics()) + (await deploymentMetrics()));
  const references = new Memo<string>(10);
  const errors = new Memo<string>(1);
  const cells = memoryRateCells();
  /** Few need these pages often. Who has the token of the metrics is not limited. */
  const isTooMuch = async ({ ip }: FastifyRequest): Promise<boolean> =>
    !(await cells.take(networkOf(ip), pagesPerMinute, Date.now())).admitted;
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

  server.get('/docs', { onRequest }, async (_request, reply) =>
    reply
      .type(html)
      .header('content-security-policy', policy)
      .send(references.get(`${apiUrl()} ${baseUrl()}`, () => referencePage(apiUrl(), baseUrl()))),
  );

  server.get('/docs/errors', { onRequest }, async (_request, reply) =>
    reply.type(html).header('content-security-policy', policy).send(errors.get('', errorsPage)),
  );
}

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

const databaseTimeoutMs = 2000;

/**
 * The check of the database for `/readyz`: null if it answers, else what is wrong with it. One query is under way at a time
 * however many requests come: a silent database must not use up the connections.
 */
function databaseCheck(db: Db): () => Promise<string | null> {
  let asking: Promise<string | null> | null = null;
  let askedAt = 0;
  const ask = () => {
    askedAt = performance.now();
    asking = findTrouble(db)
      .catch(unavailableReason)
      .finally(() => {
        asking = null;
      });
    return asking;
  };
  return () => {
    const answer = asking ?? ask();
    const { promise: late, resolve } = Promise.withResolvers<string>();
    const leftMs = Math.max(0, askedAt + databaseTimeoutMs - performance.now());
    const timer = setTimeout(resolve, leftMs, 'no answer');
    return Promise.race([answer, late]).finally(() => clearTimeout(timer));
  };
}

async function findTrouble(db: Db): Promise<string | null> {
  if (dialectOf(db) === 'sqlite') {
    await sql`select 1`.execute(db);
    return null;
  }
  const { rows } = await sql<{ writes: boolean }>`
    select current_setting('transaction_read_only') = 'off' as writes`.execute(db);
  return rows[0]!.writes ? null : 'it takes no writes';
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

/** Puts the catalogue's handler in front of the server's own listener, so that its responses bypass Fastify. */
export function mountSite(
  server: Server,
  handle: (request: IncomingMessage, response: ServerResponse) => void,
  endsConnections: () => boolean,
): void {
  const [service] = server.listeners('request') as RequestListener[];
  server.removeAllListeners('request');
  server.on('request', (request, response) => {
    if (servicePaths.test(originForm(request.url!))) return service!(request, response as never);
    if (endsConnections()) response.shouldKeepAlive = false;
    handle(request, response);
  });
}
