// Requests to a certificate authority. Unlike acme-client's own transport, this one reports the authority's error and
// Retry-After instead of hiding the former and sleeping through the latter.
import { getCACertificates } from 'node:tls';
import type { Clock } from '../../lib/clock.ts';
import { readRetryAfter } from '../../lib/retry-after.ts';
import { Agent } from '../../lib/undici.ts';
import { NotIssued } from '../authority.ts';

const timeoutMs = 30_000;
const maxBytes = 1024 * 1024;
const errorPrefix = 'urn:ietf:params:acme:error:';

/** The form that acme-client expects. */
interface AcmeResponse {
  status: number;
  headers: Record<string, string | undefined>;
  // biome-ignore lint/suspicious/noExplicitAny: its form depends on the request
  data: any;
}

export interface AcmeTransport {
  request(url: string, method: string, options?: { data?: unknown }): Promise<AcmeResponse>;
  close(): Promise<void>;
}

/** The authority's error (RFC 7807). */
export class AcmeProblem extends Error {
  readonly status: number;
  /** Without the common prefix; empty: the authority gave none. */
  readonly type: string;
  readonly retryAfterMs: number | null;

  constructor(status: number, type: string, detail: string, retryAfterMs: number | null) {
    super(detail);
    this.status = status;
    this.type = type;
    this.retryAfterMs = retryAfterMs;
  }
}

/** `ca`: a root to trust in addition to the default ones. */
export function createTransport({ ca, clock, userAgent }: { ca: string | null; clock: Clock; userAgent: string }) {
  const trusted = ca === null ? {} : { ca: [...getCACertificates('default'), ca] };
  const agent = new Agent({ connect: { timeout: timeoutMs, ...trusted }, maxResponseSize: maxBytes });
  const transport: AcmeTransport = {
    async request(url, method, { data } = {}) {
      let response: AcmeResponse;
      try {
        response = await send(agent, url, method.toUpperCase(), data, userAgent);
      } catch (error) {
        throw new NotIssued(`The certificate authority does not answer: ${reasonOf(error)}.`, null, error);
      }
      // acme-client itself repeats the request with a new nonce.
      if (response.status >= 400 && typeOf(response) !== 'badNonce') throw problemOf(response, clock.now());
      return response;
    },
    close: () => agent.destroy(),
  };
  return transport;
}

async function send(
  agent: Agent,
  url: string,
  method: string,
  data: unknown,
  userAgent: string,
): Promise<AcmeResponse> {
  const { request } = await import('undici');
  const answer = await request(url, {
    method: method as 'GET' | 'HEAD' | 'POST',
    dispatcher: agent,
    headersTimeout: timeoutMs,
    bodyTimeout: timeoutMs,
    headers: { 'user-agent': userAgent, ...(data !== undefined && { 'content-type': 'application/jose+json' }) },
    ...(data !== undefined && { body: JSON.stringify(data) }),
  });
  const headers = Object.fromEntries(
    Object.entries(answer.headers).map(([name, value]) => [name, Array.isArray(value) ? value.join(', ') : value]),
  );
  const text = await answer.body.text();
  const isJson = /\bjson\b/.test(headers['content-type'] ?? '') && text !== '';
  return { status: answer.statusCode, headers, data: isJson ? JSON.parse(text) : text };
}

function typeOf({ data }: AcmeResponse): string {
  const type = typeof data?.type === 'string' ? data.type : '';
  return type.startsWith(errorPrefix) ? type.slice(errorPrefix.length) : '';
}

function problemOf(response: AcmeResponse, nowMs: number): AcmeProblem {
  const detail = typeof response.data?.detail === 'string' ? response.data.detail : `status ${response.status}`;
  const retryAfterMs = readRetryAfter(response.headers['retry-after'], nowMs);
  return new AcmeProblem(response.status, typeOf(response), detail, retryAfterMs);
}

function reasonOf(error: unknown): string {
  const { code, message } = error as { code?: unknown; message?: unknown };
  return typeof code === 'string' ? code : String(message ?? 'unknown');
}
