// Requests to the API of a cluster. Each has a deadline, within which requests that may succeed later (429, 5xx) are
// retried with backoff, no earlier than the server asks for. Watches and logs are streams without a deadline.
import type { Readable } from 'node:stream';
import { readRetryAfter } from '../../lib/retry-after.ts';
import { Agent } from '../../lib/undici.ts';
import { EngineError, type EngineFault } from '../engine.ts';
import { AccessError, type ClusterAccess } from './cluster-access.ts';
import type { KubeObject } from './kube-objects.ts';

export type Query = Record<string, string | number | boolean | undefined>;

interface KubeRequest {
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
      const waits = createBackoff(200, 5_000);
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

const applyAttempts = 5;

/**
 * Server-side apply. Fields that others manage stay theirs: where they differ from ours, the API refuses, and this
 * rejects.
 */
export async function applyObject<T extends KubeObject>(client: KubeClient, path: string, object: object): Promise<T> {
  // JSON is YAML too.
  const contentType = 'application/apply-patch+yaml';
  for (let attempt = 1; ; attempt++) {
    try {
      return await client.request<T>({ method: 'PATCH', path, query: { fieldManager }, contentType, body: object });
    } catch (error) {
      if (!isStatus(error, 409)) throw error;
      if (error.isFieldConflict) {
        const message = `Others have ${path} too, and it is left as it is: ${error.message}`;
        throw new EngineError('start_failed', message, error);
      }
      // Another process of ours writes the same at this moment.
      if (attempt === applyAttempts) throw error;
    }
  }
}

/** null: there is none. */
export async function findObject<T extends KubeObject>(client: KubeClient, path: string): Promise<T | null> {
  try {
    return await client.request<T>({ path });
  } catch (error) {
    if (isStatus(error, 404)) return null;
    throw error;
  }
}

/** The answer of the API (`kind: Status`). */
export interface KubeStatus {
  message?: string;
  reason?: string;
  details?: { retryAfterSeconds?: number; causes?: { reason?: string; message?: string }[] };
}

/** The API answered with an error. */
export class KubeError extends EngineError {
  readonly status: number;
  /** One word: AlreadyExists, Conflict, Forbidden, Expired … */
  readonly reason: string;
  readonly retryAfterMs: number | null;
  /** Another manager has set a field of the object to something else. */
  readonly isFieldConflict: boolean;

  constructor(status: number, answer: KubeStatus, retryAfterMs: number | null) {
    super(faultOf(status), answer.message ?? `Kubernetes answered with status ${status}`);
    this.status = status;
    this.reason = answer.reason ?? '';
    this.retryAfterMs = retryAfterMs;
    this.isFieldConflict = answer.details?.causes?.some(({ reason }) => reason === 'FieldManagerConflict') ?? false;
  }
}

/** Whether the same request may succeed a little later. */
const mayPass = (status: number): boolean => status === 429 || status >= 500;

function faultOf(status: number): EngineFault {
  return mayPass(status) || status === 401 ? 'unavailable' : 'start_failed';
}

export const isStatus = (error: unknown, ...statuses: number[]): error is KubeError =>
  error instanceof KubeError && statuses.includes(error.status);

/** The API could not be reached, or did not answer in time. */
const unreachable = (server: string, reason: string, cause?: unknown): EngineError =>
  new EngineError('unavailable', `Kubernetes at ${server} does not answer: ${reason}`, cause);

/** Waits that grow while something keeps failing, with jitter. */
interface Backoff {
  /** How long to wait after one more failure; at least as long as the server asked for. */
  next(atLeastMs?: number): number;
  reset(): void;
}

export function createBackoff(firstMs: number, longestMs: number, random: () => number = Math.random): Backoff {
  let failures = 0;
  return {
    next(atLeastMs = 0) {
      const growing = Math.min(longestMs, firstMs * 2 ** Math.min(failures++, 30));
      return Math.max(atLeastMs, growing * (0.5 + random() / 2));
    },
    reset() {
      failures = 0;
    },
  };
}

/** The lines of a stream, without their ends. Throws where one is longer than `maxBytes`. */
export async function* linesOf(stream: Readable, maxBytes: number): AsyncGenerator<Buffer> {
  let parts: Buffer[] = [];
  let length = 0;
  for await (const chunk of stream as AsyncIterable<Buffer>) {
    let from = 0;
    for (let end = chunk.indexOf(10); end >= 0; end = chunk.indexOf(10, from)) {
      yield Buffer.concat([...parts, chunk.subarray(from, end)]);
      parts = [];
      length = 0;
      from = end + 1;
    }
    length += chunk.length - from;
    if (length > maxBytes) throw new Error(`a line is longer than ${maxBytes} bytes`);
    if (from < chunk.length) parts.push(chunk.subarray(from));
  }
  if (length > 0) yield Buffer.concat(parts);
}
