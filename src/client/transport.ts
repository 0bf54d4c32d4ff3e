// One request: its head, its time limit, its tries, its answer.
import { errorOfAnswer, networkError, SluiceError, unexpectedAnswer } from './error.ts';
import { pause } from './pause.ts';
import { delayMs, isUncertain, mayRetry } from './retry.ts';

export type Method = 'GET' | 'POST' | 'PATCH' | 'DELETE';

export interface ClientOptions {
  /** Where the service answers, without `/v1`: `http://127.0.0.1:8080`. */
  url: string;
  token?: string;
  /** For proxies and tests; default the global one. */
  fetch?: typeof globalThis.fetch;
  /** How often a request is tried again; default 3. */
  maxRetries?: number;
  /** How long one try may take; default 30 seconds. */
  timeoutMs?: number;
  /** A `Retry-After` beyond this is not waited for: the call fails, and the error names it. Default 60. */
  maxRetryAfterS?: number;
  /** Browsers keep their own. */
  userAgent?: string;
}

export interface CallOptions {
  signal?: AbortSignal;
  /** Of a POST; without one, the client makes one up for each call. */
  idempotencyKey?: string;
  /** An ETag: the change is made only if the resource still has it. */
  ifMatch?: string;
  /** Sees the head of a good answer: its ETag, its rate limit. */
  onResponse?: (response: { status: number; headers: Headers }) => void;
}

export type QueryValues = Record<string, string | number | boolean | undefined>;

export interface Ask {
  method: Method;
  /** Below /v1, with its parameters filled in. */
  path: string;
  query?: QueryValues | undefined;
  body?: unknown;
  options?: CallOptions | undefined;
}

function readUrl(text: string): string {
  const url = new URL(text);
  if (url.protocol !== 'http:' && url.protocol !== 'https:') throw new TypeError(`${text} is not an http address`);
  return (url.origin + url.pathname).replace(/\/+$/, '').replace(/\/v1$/, '');
}

function readToken(token: string | undefined): string | undefined {
  const trimmed = token?.trim();
  // fetch would name the token in its complaint.
  if (trimmed !== undefined && !/^[!-~]+$/.test(trimmed)) throw new TypeError('the token is not one line of ASCII');
  return trimmed;
}

const searchOf = (query: QueryValues = {}): string => {
  const given = Object.entries(query).filter((entry): entry is [string, string] => entry[1] !== undefined);
  return given.length === 0 ? '' : `?${new URLSearchParams(given.map(([key, value]) => [key, String(value)]))}`;
};

/** Not randomUUID: browsers have that only on https and on localhost. */
const randomKey = (): string =>
  Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, '0')).join('');

/** Browsers hide where a redirect leads. */
const isRedirect = (response: Response) =>
  response.type === 'opaqueredirect' || (response.status >= 300 && response.status < 400);

export class Transport {
  readonly url: string;
  readonly maxRetries: number;
  readonly timeoutMs: number;
  readonly #maxRetryAfterS: number;
  readonly #fetch: typeof globalThis.fetch;
  readonly #head: Record<string, string>;

  constructor(options: ClientOptions) {
    const token = readToken(options.token);
    this.url = readUrl(options.url);
    this.maxRetries = options.maxRetries ?? 3;
    this.timeoutMs = options.timeoutMs ?? 30_000;
    this.#maxRetryAfterS = options.maxRetryAfterS ?? 60;
    this.#fetch = options.fetch ?? ((input, init) => globalThis.fetch(input, init));
    this.#head = {
      ...(token !== undefined && { authorization: `Bearer ${token}` }),
      ...(options.userAgent !== undefined && { 'user-agent': options.userAgent }),
    };
  }

  /** The body of the answer; undefined where it has none. */
  async send(ask: Ask): Promise<unknown> {
    const { method, body, options = {} } = ask;
    const idempotencyKey = options.idempotencyKey ?? (method === 'POST' ? randomKey() : undefined);
    const headers: Record<string, string> = {
      accept: 'application/json',
      ...(body !== undefined && { 'content-type': 'application/json' }),
      ...(idempotencyKey !== undefined && { 'idempotency-key': idempotencyKey }),
      ...(options.ifMatch !== undefined && { 'if-match': options.ifMatch }),
    };
    const init = { method, headers, body: body === undefined ? null : JSON.stringify(body) };
    let uncertain = false;
    for (let attempt = 0; ; attempt++) {
      try {
        const { response, value } = await this.#try(ask, init);
        options.onResponse?.({ status: response.status, headers: response.headers });
        return value;
      } catch (error) {
        if (!(error instanceof SluiceError)) throw error;
        // An earlier try whose answer was lost has deleted it.
        if (uncertain && method === 'DELETE' && error.status === 404) return undefined;
        uncertain ||= isUncertain(error);
        const tooLong = (error.retryAfterS ?? 0) > this.#maxRetryAfterS;
        const attempted = { method, idempotencyKey, ifMatch: options.ifMatch };
        if (attempt >= this.maxRetries || tooLong || !mayRetry(attempted, error)) throw error;
        await pause(delayMs(attempt, error.retryAfterS, Math.random()), options.signal);
      }
    }
  }

  async #try(ask: Ask, init: RequestInit): Promise<{ response: Response; value: unknown }> {
    const what = `${ask.method} ${ask.path}`;
    return this.limited(what, ask.options?.signal, async (signal) => {
      const response = await this.open(ask, { ...init, signal });
      const text = await response.text();
      if (!response.ok) throw errorOfAnswer(what, response, text);
      if (response.status === 204) return { response, value: undefined };
      try {
        return { response, value: JSON.parse(text) };
      } catch (error) {
        throw unexpectedAnswer(what, response, text, error);
      }
    });
  }

  /** Redirects are not followed: a POST would become a GET. */
  async open(ask: Ask, init: RequestInit): Promise<Response> {
    const address = `${this.url}/v1${ask.path}${searchOf(ask.query)}`;
    const headers = { ...this.#head, ...(init.headers as Record<string, string>) };
    const response = await this.#fetch(address, { ...init, headers, redirect: 'manual', cache: 'no-store' });
    if (isRedirect(response)) {
      const to = response.headers.get('location');
      const text = `a redirect${to === null ? '' : ` to ${to}`}; give the client the address it leads to`;
      throw unexpectedAnswer(`${ask.method} ${ask.path}`, response, text);
    }
    return response;
  }

  /** Whatever goes wrong becomes a SluiceError that says whether the time was up, the caller called it off, or neither. */
  async limited<T>(
    what: string,
    signal: AbortSignal | undefined,
    work: (signal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    const controller = new AbortController();
    const callOff = () => controller.abort(signal?.reason);
    let isLate = false;
    const timer = setTimeout(() => {
      isLate = true;
      controller.abort();
    }, this.timeoutMs);
    if (signal?.aborted) callOff();
    signal?.addEventListener('abort', callOff);
    try {
      return await work(controller.signal);
    } catch (error) {
      if (error instanceof SluiceError) throw error;
      if (isLate)
        throw new SluiceError({ code: 'timeout', message: `${what}: no answer in ${this.timeoutMs} ms`, cause: error });
      if (signal?.aborted) throw new SluiceError({ code: 'aborted', message: `${what}: called off`, cause: error });
      throw networkError(what, error);
    } finally {
      clearTimeout(timer);
      signal?.removeEventListener('abort', callOff);
    }
  }
}
