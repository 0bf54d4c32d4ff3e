// Who may read the metrics, which show what belongs to every account.
import { hash, timingSafeEqual } from 'node:crypto';
import type { FastifyRequest } from 'fastify';
import { isAmong, type Range } from '../../lib/address.ts';

export interface MetricsAccess {
  /** Null: those who reach the service directly may read them. */
  token: string | null;
  trustedProxies: readonly Range[];
}

interface Refusal {
  status: 401 | 403;
  text: string;
}

const digest = (text: string): Buffer => hash('sha256', text, 'buffer');

export function metricsRefusal({ raw }: FastifyRequest, { token, trustedProxies }: MetricsAccess): Refusal | null {
  if (token !== null) {
    const given = /^Bearer +(.+)$/i.exec(raw.headers.authorization ?? '')?.[1] ?? '';
    if (timingSafeEqual(digest(given), digest(token))) return null;
    return { status: 401, text: 'Send SLUICE_METRICS_TOKEN as Authorization: Bearer.\n' };
  }
  const cameThroughProxy =
    raw.headers['x-forwarded-for'] !== undefined && isAmong(raw.socket.remoteAddress ?? '', trustedProxies);
  if (!cameThroughProxy) return null;
  return {
    status: 403,
    text: 'Metrics are not for the public. Ask the service directly, or set SLUICE_METRICS_TOKEN.\n',
  };
}
