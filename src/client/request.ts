// What a request to the service is made of, and the options that users of the client set.

export type Method = 'GET' | 'POST' | 'PATCH' | 'DELETE';

export interface ClientOptions {
  /** Where the service answers, without `/v1`: `http://127.0.0.1:8080`. */
  url: string;
  token?: string;
  /** For proxies and tests; default the global one. */
  fetch?: typeof globalThis.fetch;
  /** How often a failed request is retried; default 3. */
  maxRetries?: number;
  /** How long one attempt may take; default 30 seconds. */
  timeoutMs?: number;
  /** If `Retry-After` is longer than this, the call fails at once with an error that says how long. Default 60. */
  maxRetryAfterS?: number;
  /** Browsers ignore this and send their own. */
  userAgent?: string;
}

export interface CallOptions {
  signal?: AbortSignal;
  /** For a POST; by default the client generates one for each call. */
  idempotencyKey?: string;
  /** An ETag: the change is made only if the resource still has it. */
  ifMatch?: string;
  /** Called with the status and headers of a successful response, for its ETag or rate limit. */
  onResponse?: (response: { status: number; headers: Headers }) => void;
}

export interface StreamOptions {
  /** Start after this event; default: with the next one. */
  lastEventId?: string;
  /** Ends the loop, without an error. */
  signal?: AbortSignal;
  /** When `open` follows `lost`, fetch again what you display: change notices are not stored. */
  onState?: (state: 'open' | 'lost') => void;
  /** The service does not have the event to resume after: all its events follow, also those received earlier. */
  onReset?: () => void;
}

export type QueryValues = Record<string, string | number | boolean | undefined>;

export interface ApiRequest {
  method: Method;
  /** Below /v1, with its parameters filled in. */
  path: string;
  query?: QueryValues | undefined;
  body?: unknown;
  options?: CallOptions | undefined;
}
