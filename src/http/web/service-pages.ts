// Pages about the service itself, outside /v1: health, metrics, the reference.
import type { FastifyInstance } from 'fastify';
import { sql } from 'kysely';
import type { Db } from '../../db/database.ts';
import type { HttpMetrics } from '../metrics.ts';
import { errorsPage, referencePage } from '../reference/docs-pages.ts';

interface ServicePageParts {
  db: Db;
  metrics: HttpMetrics;
  /** Metrics of the deployments, in Prometheus' text format. */
  figures(): Promise<string>;
  /** The root certificate of the local CA; null: certificates come from an ACME directory. */
  caPem: (() => Promise<string>) | null;
  baseUrl(): string;
  apiUrl(): string;
  isStopping(): boolean;
}

const readinessTimeoutMs = 2000;

export function mountServicePages(
  server: FastifyInstance,
  { db, metrics, figures, caPem, baseUrl, apiUrl, isStopping }: ServicePageParts,
): void {
  const html = 'text/html; charset=utf-8';
  const policy =
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

  server.get('/livez', async (_request, reply) =>
    reply.header('cache-control', 'no-store').type('text/plain').send('ok\n'),
  );

  server.get('/readyz', async (_request, reply) => {
    reply.header('cache-control', 'no-store').type('text/plain');
    if (isStopping()) return reply.code(503).header('retry-after', '5').send('stopping\n');
    const answered = await answers(db);
    return answered ? reply.send('ok\n') : reply.code(503).header('retry-after', '2').send('database unavailable\n');
  });

  server.get('/metrics', async (_request, reply) =>
    reply.type(metrics.registry.contentType).send((await metrics.registry.metrics()) + (await figures())),
  );

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

async function answers(db: Db): Promise<boolean> {
  const late = new Promise<boolean>((resolve) => setTimeout(resolve, readinessTimeoutMs, false).unref());
  const asked = sql`select 1`.execute(db).then(
    () => true,
    () => false,
  );
  return Promise.race([asked, late]);
}
