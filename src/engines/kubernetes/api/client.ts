// Requests to the API of a cluster. Each has a deadline, within which refusals that may pass (429, 5xx) are asked again,
// as late as the server wishes. Watches and logs are streams, which last.
import type { Readable } from 'node:stream';
import { readRetryAfter } from '../../../lib/retry-after.ts';
import { Agent } from '../../../lib/undici.ts';
import { EngineError } from '../../engine.ts';
import type { ClusterAccess } from './access.ts';
import { AccessError } from './access.ts';
import { backOff } from './back-off.ts';
import { KubeError, type KubeStatus, mayPass, unreachable } from './kube-error.ts';

export type Query = Record<string, string | number | boolean | undefined>;

export interface KubeRequest {
  method?: 'GET' | 'POST' | 'PATCH' | 'PUT' | 'DELETE';
  path: string;
  query?: Query;
  body?: object;
  /** `application/json` if it is left out. */
  contentType?: string;
  timeoutMs?: number;
}

export interface KubeClient {
  /** What others call the cluster, for people to read. */
  server: string;
  request<T>(request: KubeRequest): Promise<T>;
  /** Begins an answer that goes on; ends with `signal`. */
  stream(path: string, query: Query, signal: AbortSignal): Promise<Readable>;
  /** Aborted by close(). */
  closing: AbortSignal;
  close(): Promise<void>;
}

export const fieldManager = 'sluice';
const requestTimeoutMs = 15_000;
const connectTimeoutMs = 5_000;
const maxAnswerBytes = 256 * 1024 * 1024;
const maxErrorBytes = 256 * 1024;

interface Sent {
  method: NonNullable<KubeRequest['method']>;
  url: URL;
  body: string | undefined;
  contentType: string;
}

export function connectKubernetes(access: ClusterAccess, now: () => number = Date.now): KubeClient {
  const { ca, client, serverName, token } = access;
  const agent = new Agent({
    connect: {
      timeout: connectTimeoutMs,
      keepAlive: true,
      keepAliveInitialDelay: 15_000,
      ...(ca !== null && { ca }),
      ...(client && { cert: client.cert, key: client.key }),
      ...(serverName !== null && { servername: serverName }),
    },
    pipelining: 1,
    // The deadline of a request, and the silence of a watch, are measured elsewhere.
    headersTimeout: 0,
    bodyTimeout: 0,
  });
  const closing = new AbortController();

  const send = async ({ method, url, body, contentType }: Sent, signal: AbortSignal, anew: boolean) => {
    const { request } = await import('undici');
    return request(url, {
      method,
      dispatcher: agent,
      headers: {
        accept: 'application/json',
        'user-agent': fieldManager,
        ...(token && { authorization: `Bearer ${await token(anew)}` }),
        ...(body !== undefined && { 'content-type': contentType }),
      },
      ...(body !== undefined && { body }),
      signal,
    });
  };

  /** A token that was replaced meanwhile is read again, once. */
  const answerTo = async (sent: Sent, signal: AbortSignal) => {
    try {
      const answer = await send(sent, signal, false);
      if (answer.statusCode !== 401 || !token) return answer;
      await answer.body.dump();
      return await send(sent, signal, true);
    } catch (error) {
      throw reasonFor(access.server, error, closing.signal);
    }
  };

  const refusalOf = async (answer: Awaited<ReturnType<typeof answerTo>>): Promise<KubeError> => {
    const text = await readText(answer.body, maxErrorBytes).catch(() => '');
    const status = parseStatus(text);
    const header = [answer.headers['retry-after']].flat()[0];
    const afterMs = readRetryAfter(header, now()) ?? secondsToMs(status.details?.retryAfterSeconds);
    return new KubeError(answer.statusCode, status, afterMs);
  };

  const urlOf = (path: string, query: Query = {}): URL => {
    const url = new URL(access.server + path);
    for (const [name, value] of Object.entries(query))
      if (value !== undefined) url.searchParams.set(name, String(value));
    return url;
  };

  return {
    server: new URL(access.server).host,
    closing: closing.signal,
    async request<T>(asked: KubeRequest): Promise<T> {
      const { method = 'GET', path, query, body, contentType = 'application/json' } = asked;
      const { timeoutMs = requestTimeoutMs } = asked;
      const sent: Sent = { method, url: urlOf(path, query), body: body && JSON.stringify(body), contentType };
      const signal = AbortSignal.any([closing.signal, AbortSignal.timeout(timeoutMs)]);
      const giveUpAt = performance.now() + timeoutMs;
      const waits = backOff(200, 5_000);
      for (;;) {
        const answer = await answerTo(sent, signal);
        if (answer.statusCode < 300) {
          const text = await readText(answer.body, maxAnswerBytes).catch((error) => {
            throw reasonFor(access.server, error, closing.signal);
          });
          return JSON.parse(text) as T;
        }
        const refusal = await refusalOf(answer);
        const waitMs = waits.next(refusal.retryAfterMs ?? 0);
        if (!mayPass(refusal.status) || performance.now() + waitMs > giveUpAt) throw refusal;
        await pause(waitMs, closing.signal);
      }
    },
    async stream(path, query, signal) {
      const sent: Sent = { method: 'GET', url: urlOf(path, query), body: undefined, contentType: '' };
      const answer = await answerTo(sent, AbortSignal.any([closing.signal, signal]));
      if (answer.statusCode >= 300) throw await refusalOf(answer);
      return answer.body;
    },
    async close() {
      closing.abort();
      await agent.destroy();
    },
  };
}

const secondsToMs = (seconds: number | undefined): number | null => (seconds === undefined ? null : seconds * 1000);

function parseStatus(text: string): KubeStatus {
  try {
    const parsed = JSON.parse(text);
    if (typeof parsed === 'object' && parsed !== null) return parsed;
  } catch {}
  // Not from the API itself: a proxy before it, or the API before it is ready.
  return text === '' ? {} : { message: text.slice(0, 500) };
}

function reasonFor(server: string, error: unknown, closing: AbortSignal): Error {
  if (error instanceof EngineError) return error;
  if (closing.aborted) return new EngineError('unavailable', 'the connection to Kubernetes is closed', error);
  if (error instanceof AccessError) return new EngineError('unavailable', error.message, error);
  const { name, message, code } = error as Error & { code?: string };
  const reason = name === 'TimeoutError' ? 'no answer in time' : message || code || name;
  return unreachable(new URL(server).host, reason, error);
}

async function readText(body: Readable, maxBytes: number): Promise<string> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of body as AsyncIterable<Buffer>) {
    length += chunk.length;
    if (length > maxBytes) throw new Error(`the answer is longer than ${maxBytes} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

/** Ends early, and without an error, when `signal` does. */
export function pause(ms: number, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer);
      signal.removeEventListener('abort', done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    signal.addEventListener('abort', done);
  });
}
