// Pages about the service itself, outside /v1: health, metrics, the reference.
import type { FastifyInstance } from 'fastify';
import type { Db } from '../../db/database.ts';
import type { Loops } from '../../lib/loops.ts';
import type { HttpMetrics } from '../metrics.ts';
import { errorsPage, referencePage } from '../reference/docs-pages.ts';
import { databaseCheck } from './database-check.ts';
import { type MetricsAccess, metricsRefusal } from './metrics-access.ts';

interface ServicePageParts {
  db: Db;
  loops: Loops;
  metrics: HttpMetrics;
  metricsAccess: MetricsAccess;
  /** Metrics of the deployments, in Prometheus' text format. */
  figures(): Promise<string>;
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
  { db, loops, metrics, metricsAccess, figures, remarks, caPem, baseUrl, apiUrl, isStopping }: ServicePageParts,
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

  server.get('/metrics', async (request, reply) => {
    const refusal = metricsRefusal(request, metricsAccess);
    if (refusal) {
      reply.code(refusal.status).header('cache-control', 'no-store').type('text/plain');
      if (refusal.status === 401) reply.header('www-authenticate', 'Bearer');
      return reply.send(refusal.text);
    }
    return reply.type(metrics.registry.contentType).send((await metrics.registry.metrics()) + (await figures()));
  });

  server.get('/local-ca.pem', async (_request, reply) => {
    if (!caPem) return reply.code(404).type('text/plain').send('certificates come from an ACME directory\n');
    return reply.type('application/x-pem-file').send(await caPem());
  });

  server.get('/docs', async (_request, reply) =>
    reply.type(html).header('content-security-policy', policy).send(referencePage(apiUrl(), baseUrl())),
  );

  server.get('/docs/errors', async (_request, reply) =>
    reply.type(html).header('content-security-policy', policy).send(errorsPage()),
  );
}
