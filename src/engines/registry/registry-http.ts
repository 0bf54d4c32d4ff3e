// Requests to registries: each with a deadline and a limit to its answer, to an address where a registry may be.
import { createHash } from 'node:crypto';
import type { Socket } from 'node:net';
import { Agent, buildConnector } from '../../lib/undici.ts';
import { EngineError } from '../engine.ts';
import { isLoopbackHost, isRefused } from './registry-endpoints.ts';
import { publicReason } from './registry-reasons.ts';

export interface Answer {
  status: number;
  headers: Record<string, string | string[] | undefined>;
  body: Buffer;
}

interface RegistryRequest {
  method?: 'GET' | 'HEAD' | 'POST';
  headers?: Record<string, string>;
  body?: string;
  maxBytes: number;
  signal: AbortSignal;
}

export interface RegistryHttp {
  /** Follows redirects, without what authorizes the request where they lead to another host. */
  ask(url: URL, ask: RegistryRequest): Promise<Answer>;
  close(): Promise<void>;
}

const maxRedirects = 5;

export function registryHttp(userAgent: string, timeoutMs: number): RegistryHttp {
  const connectTo = buildConnector({ timeout: timeoutMs });
  const connect: buildConnector.connector = (options, callback) =>
    connectTo(options, (error, socket) => {
      if (error) return callback(error, null);
      const reached = (socket as Socket).remoteAddress ?? '';
      if (!isRefused(reached)) return callback(null, socket!);
      (socket as Socket).destroy();
      callback(new Error(`${options.hostname} leads to ${reached}, where no registry may be`), null);
    });
  const agent = new Agent({ connect, keepAliveTimeout: 5_000, headersTimeout: timeoutMs, bodyTimeout: timeoutMs });

  const send = async (
    url: URL,
    { method = 'GET', headers, body, maxBytes, signal }: RegistryRequest,
  ): Promise<Answer> => {
    const { request } = await import('undici');
    const answer = await request(url, {
      method,
      dispatcher: agent,
      headers: { 'user-agent': userAgent, ...headers },
      ...(body !== undefined && { body }),
      signal,
    });
    const chunks: Buffer[] = [];
    let length = 0;
    for await (const chunk of answer.body) {
      length += chunk.length;
      if (length > maxBytes) throw new Error(`the answer is longer than ${maxBytes} bytes`);
      chunks.push(chunk);
    }
    return { status: answer.statusCode, headers: answer.headers, body: Buffer.concat(chunks) };
  };

  return {
    async ask(url, ask) {
      let at = url;
      let { headers = {} } = ask;
      for (let redirects = 0; ; redirects++) {
        const answer = await send(at, { ...ask, headers }).catch((error) => {
          throw unreachable(at, error);
        });
        const location = answer.headers.location;
        if (![301, 302, 303, 307, 308].includes(answer.status) || typeof location !== 'string') return answer;
        const next = URL.parse(location, at);
        if (redirects === maxRedirects || !next || !isSafe(next, at)) {
          throw new EngineError('registry_unreachable', `${at.host} redirects to where it may not`);
        }
        if (next.origin !== at.origin) headers = withoutAuthorization(headers);
        at = next;
      }
    },
    close: () => agent.destroy(),
  };
}

/** TLS all the way; a registry on loopback may lead to others there. */
export const isSafe = (next: URL, from: URL): boolean =>
  next.protocol === 'https:' ||
  (next.protocol === 'http:' && from.protocol === 'http:' && isLoopbackHost(next.hostname));

function withoutAuthorization(headers: Record<string, string>): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => name !== 'authorization'));
}

/** Too slow, or broken off: that may pass. */
const mayPass = /^(TimeoutError|UND_ERR_HEADERS_TIMEOUT|UND_ERR_BODY_TIMEOUT|UND_ERR_SOCKET|ECONNRESET|EPIPE)$/;

function unreachable({ host }: URL, error: unknown): EngineError {
  const { name, code = '', message } = error as Error & { code?: string };
  if (mayPass.test(name) || mayPass.test(code)) {
    const reason = name === 'TimeoutError' ? 'no answer in time' : (publicReason(`${code} ${message}`) ?? code);
    return new EngineError('registry_failing', `${host} does not answer as it should: ${reason}`, error);
  }
  return new EngineError(
    'registry_unreachable',
    `${host} cannot be reached: ${publicReason(`${code} ${message}`) ?? (code || name)}`,
    error,
  );
}

export const sha256 = (bytes: Buffer): string => `sha256:${createHash('sha256').update(bytes).digest('hex')}`;
