// Sends requests: headers, time limit, retries, and reading the response.
import { errorOfAnswer, networkError, SluiceError, unexpectedAnswer } from './error.ts';
import type { ApiRequest, ClientOptions, QueryValues } from './request.ts';
import { delayMs, isUncertain, mayRetry, pause } from './retry.ts';

function readUrl(text: string): string {
  const url = new URL(text);
  if (url.protocol !== 'http:' && url.protocol !== 'https:') throw new TypeError(`${text} is not an http address`);
  return (url.origin + url.pathname).replace(/\/+$/, '').replace(/\/v1$/, '');
}

function readToken(token: string | undefined): string | undefined {
  const trimmed = token?.trim();
  // Checked here because the error of fetch would contain the token.
  if (trimmed !== undefined && !/^[!-~]+$/.test(trimmed)) throw new TypeError('the token is not one line of ASCII');
  return trimmed;
}

const searchOf = (query: QueryValues = {}): string => {
  const given = Object.entries(query).filter((entry): entry is [string, string] => entry[1] !== undefined);
  return given.length === 0 ? '' : `?${new URLSearchParams(given.map(([key, value]) => [key, String(value)]))}`;
};

/** Browsers have randomUUID only on https and on localhost. */
const randomKey = (): string =>
  Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, '0')).join('');

/** Browsers report a redirect as opaque, without its target. */
const isRedirect = (response: Response) =>
  response.type === 'opaqueredirect' || (response.status >= 300 && response.status < 400);

export class Transport {
  readonly url: string;
  readonly maxRetries: number;
  readonly timeoutMs: number;
  readonly #maxRetryAfterS: number;
  readonly #fetch: typeof globalThis.fetch;
  readonly #headers: Record<string, string>;

  constructor(options: ClientOptions) {
    const token = readToken(options.token);
    this.url = readUrl(options.url);
    this.maxRetries = options.maxRetries ?? 3;
    this.timeoutMs = options.timeoutMs ?? 30_000;
    this.#maxRetryAfterS = options.maxRetryAfterS ?? 60;
    this.#fetch = options.fetch ?? ((input, init) => globalThis.fetch(input, init));
    this.#headers = {
      ...(token !== undefined && { authorization: `Bearer ${token}` }),
      ...(options.userAgent !== undefined && { 'user-agent': options.userAgent }),
    };
  }

  /** The parsed body of the response; undefined if it has none. */
  async send(request: ApiRequest): Promise<unknown> {
    const { method, body, options = {} } = request;
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
        const { response, value } = await this.#attempt(request, init);
        options.onResponse?.({ status: response.status, headers: response.headers });
        return value;
      } catch (error) {
        if (!(error instanceof SluiceError)) throw error;
        // An earlier attempt, whose response was lost, deleted it.
        if (uncertain && method === 'DELETE' && error.status === 404) return undefined;
        uncertain ||= isUncertain(error);
        const tooLong = (error.retryAfterS ?? 0) > this.#maxRetryAfterS;
        const attempted = { method, idempotencyKey, ifMatch: options.ifMatch };
        if (attempt >= this.maxRetries || tooLong || !mayRetry(attempted, error)) throw error;
        await pause(delayMs(attempt, error.retryAfterS, Math.random()), options.signal);
      }
    }
  }

  async #attempt(request: ApiRequest, init: RequestInit): Promise<{ response: Response; value: unknown }> {
    const what = `${request.method} ${request.path}`;
    return this.limited(what, request.options?.signal, async (signal) => {
      const response = await this.open(request, { ...init, signal });
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

  /** Does not follow redirects, because a POST would become a GET. */
  async open(request: ApiRequest, init: RequestInit): Promise<Response> {
    const address = `${this.url}/v1${request.path}${searchOf(request.query)}`;
    const headers = { ...this.#headers, ...(init.headers as Record<string, string>) };
    const response = await this.#fetch(address, { ...init, headers, redirect: 'manual', cache: 'no-store' });
    if (isRedirect(response)) {
      const to = response.headers.get('location');
      const text = `a redirect${to === null ? '' : ` to ${to}`}; give the client the address it leads to`;
      throw unexpectedAnswer(`${request.method} ${request.path}`, response, text);
    }
    return response;
  }

  /** Runs `work` within the time limit. Every failure becomes a SluiceError: `timeout`, `aborted` or `network`. */
  async limited<T>(
    what: string,
    signal: AbortSignal | undefined,
    work: (signal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    const controller = new AbortController();
    const abort = () => controller.abort(signal?.reason);
    let isLate = false;
    const timer = setTimeout(() => {
      isLate = true;
      controller.abort();
    }, this.timeoutMs);
    if (signal?.aborted) abort();
    signal?.addEventListener('abort', abort);
    try {
      return await work(controller.signal);
    } catch (error) {
      if (error instanceof SluiceError) throw error;
      if (isLate)
        throw new SluiceError({ code: 'timeout', message: `${what}: no answer in ${this.timeoutMs} ms`, cause: error });
      if (signal?.aborted) throw new SluiceError({ code: 'aborted', message: `${what}: aborted`, cause: error });
      throw networkError(what, error);
    } finally {
      clearTimeout(timer);
      signal?.removeEventListener('abort', abort);
    }
  }
}
