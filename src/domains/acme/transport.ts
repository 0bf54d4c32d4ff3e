// Requests to a certificate authority. acme-client's own transport keeps what the authority says was wrong to itself, and
// sleeps through a Retry-After of hours; this one tells both.
import { getCACertificates } from 'node:tls';
import { Agent, request } from 'undici';
import type { Clock } from '../../lib/clock.ts';
import { readRetryAfter } from '../../lib/retry-after.ts';
import { NotIssued } from '../authority.ts';

const timeoutMs = 30_000;
const maxBytes = 1024 * 1024;
const errorPrefix = 'urn:ietf:params:acme:error:';

/** As acme-client wants it. */
export interface AcmeResponse {
  status: number;
  headers: Record<string, string | undefined>;
  // biome-ignore lint/suspicious/noExplicitAny: what it is depends on what was asked for
  data: any;
}

export interface AcmeTransport {
  request(url: string, method: string, options?: { data?: unknown }): Promise<AcmeResponse>;
  close(): Promise<void>;
}

/** What an authority says was wrong (RFC 7807). */
export class AcmeProblem extends Error {
  readonly status: number;
  /** Without the prefix they all share; empty: it did not say. */
  readonly type: string;
  readonly askedMs: number | null;

  constructor(status: number, type: string, detail: string, askedMs: number | null) {
    super(detail);
    this.status = status;
    this.type = type;
    this.askedMs = askedMs;
  }
}

/** `ca`: roots to trust besides those everybody does. */
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
      // The library repeats a request with a new nonce by itself.
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
  const askedMs = readRetryAfter(response.headers['retry-after'], nowMs);
  return new AcmeProblem(response.status, typeOf(response), detail, askedMs);
}

function reasonOf(error: unknown): string {
  const { code, message } = error as { code?: unknown; message?: unknown };
  return typeof code === 'string' ? code : String(message ?? 'unknown');
}
